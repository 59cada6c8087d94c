#pragma once
#include "kernels/tape.h"

namespace saccade {

/// Gate first (Mamba-2, arXiv:2405.21060): y = RMS(x ∘ silu(z)) ∘ gain, the mean square taken in each of `groups` slices of D.
/// x, z [..., D]   gain [D]   RMS(u) = u / sqrt(mean(u²) + eps)
Tensor rms_norm_after_gate(Tape& tape, const Tensor& x, const Tensor& z, const Tensor& gain, int64_t groups, double eps);

/// Gate last (Gated DeltaNet, arXiv:2412.06464): y = RMS(x) ∘ gain ∘ silu(z).      x, z [..., D]   gain [D]
Tensor rms_norm_before_gate(Tape& tape, const Tensor& x, const Tensor& z, const Tensor& gain, double eps);

}  // namespace saccade
