#pragma once
#include "kernels/tape.h"

namespace saccade {

/// y = x / sqrt(Σx² + eps) over the last dimension (DeltaNet's queries and keys, arXiv:2406.06484).      x [..., D]
Tensor l2_norm(Tape& tape, const Tensor& x, double eps);

}  // namespace saccade
