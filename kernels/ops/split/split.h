#pragma once
#include <vector>

#include "kernels/engine/tape.h"

namespace saccade {

/// Source: torch.split over the last dimension, with copies:
///   [y_0 | y_1 | …] = x
/// x [..., Σ widths]   y_i [..., widths_i] of x's dtype
/// Throws std::invalid_argument where the widths do not add up to the last dimension; DeviceError on CUDA for more than 8 outputs.
std::vector<Tensor> split(Tape& tape, const Tensor& x, const std::vector<int64_t>& widths);

}  // namespace saccade
