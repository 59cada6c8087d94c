#pragma once
#include <vector>

#include "kernels/engine/tape.h"

namespace saccade {

/// Lists of tensors, one by one, each pair of one size and dtype (f32, f64). No gradients.
/// Source: this project (sums of gradients over micro-batches and ranks, models/training/tree_sum.h).
/// Throws std::invalid_argument where the lists are not as long, or a pair is not alike.

/// sums[i] ← sums[i] + terms[i]
void add_all(Tape& tape, const std::vector<Tensor>& sums, const std::vector<Tensor>& terms);
/// to[i] ← from[i]
void copy_all(Tape& tape, const std::vector<Tensor>& to, const std::vector<Tensor>& from);

}  // namespace saccade
