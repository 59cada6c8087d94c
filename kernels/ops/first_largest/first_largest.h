#pragma once
#include "kernels/engine/tape.h"

namespace saccade {

/// Greedy decoding: the place of the largest number of every row, the first of equals:
///   index_n = min argmax_v x_nv
/// x [N, V]   index i32 [N], written in place. No gradient. A row of NaN alone gives 0.
/// Source: torch.argmax, whose choice among equals is not said.
/// Throws std::invalid_argument where a shape or dtype differs from these.
void first_largest(Tape& tape, const Tensor& x, const Tensor& index);

}  // namespace saccade
