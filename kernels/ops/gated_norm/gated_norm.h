#pragma once
#include "kernels/engine/tape.h"

namespace saccade {

/// RMSNorm after the gate, of Mamba-2 (arXiv:2405.21060, section 7.1; the public code's RMSNormGated), with the weight w = `weight`:
///   y = RMS(x ∘ silu(z)) ∘ w,   RMS(u) = u / sqrt(mean(u²) + eps), the mean taken in each of `groups` slices of D
/// x, z, y [..., D] of one dtype   weight [D] of accumulation_dtype(x)
/// Throws std::invalid_argument where z or weight has another shape or dtype or groups does not divide D; DeviceError on CUDA for slices
/// above 4096.
Tensor rms_norm_after_gate(Tape& tape, const Tensor& x, const Tensor& z, const Tensor& weight, int64_t groups, double eps);

/// RMSNorm before the gate, of Gated DeltaNet (arXiv:2412.06464, section 3.4), with the weight w = `weight`:
///   y = RMS(x) ∘ w ∘ silu(z)
/// Shapes, dtypes and errors as above, with one group.
Tensor rms_norm_before_gate(Tape& tape, const Tensor& x, const Tensor& z, const Tensor& weight, double eps);

}  // namespace saccade
