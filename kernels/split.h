#pragma once
#include <vector>

#include "kernels/tape.h"

namespace saccade {

/// The last dimension cut into pieces of these widths, which must add up to it.      x [..., Σ widths]   y_i [..., widths_i]
std::vector<Tensor> split(Tape& tape, const Tensor& x, const std::vector<int64_t>& widths);

}  // namespace saccade
