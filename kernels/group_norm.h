#pragma once
#include "kernels/tape.h"

namespace saccade {

/// Layer norm inside each of `groups` slices of the last dimension (the heads of RWKV):
///   y = (x − mean) / sqrt(var + eps) · gain + bias      x [..., D]   gain, bias [D]
Tensor group_norm(Tape& tape, const Tensor& x, const Tensor& gain, const Tensor& bias, int64_t groups, double eps);

/// y = z / max(‖z‖, floor) over the last dimension, z = x ∘ scale (RWKV-7's removal key; specification 2.5, L2 in max form).
/// x [..., N]; scale: one [N] for each of the last rows in turn ([H, N] for x [B, T, H, N]), or empty for 1
Tensor unit_norm(Tape& tape, const Tensor& x, const Tensor& scale, double floor);

}  // namespace saccade
