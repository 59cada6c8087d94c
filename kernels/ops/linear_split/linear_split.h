#pragma once
#include <vector>

#include "kernels/engine/tape.h"

namespace saccade {

/// One linear with several outputs: `linear` and a split of its last dimension, without the copy.
///   y_i = x W_iᵀ,   W_i the next widths_i rows of W
/// x [..., in]   weight W [Σ widths, in] of accumulation_dtype(x)   y_i [..., widths_i] of x's dtype
/// Source: torch.nn.functional.linear and torch.split.
/// Throws std::invalid_argument where W has another shape or dtype or the widths do not add up to its rows.
std::vector<Tensor> linear_split(Tape& tape, const Tensor& x, const Tensor& weight, const std::vector<int64_t>& widths);

}  // namespace saccade
