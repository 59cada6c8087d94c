#pragma once
#include "kernels/engine/tape.h"

namespace saccade {

/// Group norm (arXiv:1803.08494, section 3.1) of every token by itself: layer norm inside each of `groups` slices of the last dimension,
/// with the weight w = `weight`. RWKV takes its heads as groups (arXiv:2404.05892, section 4.1.2).
///   y = (x − mean) / sqrt(var + eps) ∘ w + bias,   mean and biased variance of a slice of D / groups elements
/// x, y [..., D] of one dtype   weight, bias [D] of accumulation_dtype(x)
/// Throws std::invalid_argument where weight or bias is not [D] or groups does not divide D; DeviceError on CUDA for slices above 4096.
Tensor group_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t groups, double eps);

/// L2 norm with a floor, of RWKV-7's removal key (arXiv:2503.14456, equations 6 and 15; κ̂ = y, ξ = scale):
///   y = z / max(‖z‖₂, floor) over the last dimension,   z = x ∘ scale
/// x, y [..., N] of one dtype   scale [N], or [H, N] for rows that take its H rows in turn (x [B, T, H, N]), or empty for 1; of
/// accumulation_dtype(x)
/// Throws std::invalid_argument where the last dimension of scale is not N or its rows do not divide those of x; DeviceError on CUDA for
/// N above 4096.
Tensor unit_norm(Tape& tape, const Tensor& x, const Tensor& scale, double floor);

}  // namespace saccade
