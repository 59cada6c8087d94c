#pragma once
#include <vector>

#include "kernels/tape.h"

namespace saccade {

/// One linear whose outputs are several tensors: y_i = x W_iᵀ, W_i the next widths_i rows of weight. What `linear` and a cut of
/// its last dimension give, without the copy.
/// x [..., in]   weight [Σ widths, in]   y_i [..., widths_i]
std::vector<Tensor> linear_pieces(Tape& tape, const Tensor& x, const Tensor& weight, const std::vector<int64_t>& widths);

}  // namespace saccade
