#pragma once
#include "kernels/engine/tape.h"

namespace saccade {

/// L2 norm of DeltaNet's queries and keys (arXiv:2406.06484, section 3; eps under the root as in the public code):
///   y = x / sqrt(Σ x² + eps) over the last dimension
/// x, y [..., D] of one dtype
/// Throws std::invalid_argument unless eps > 0; DeviceError on CUDA for D above 4096.
Tensor l2_norm(Tape& tape, const Tensor& x, double eps);

}  // namespace saccade
