#pragma once
#include "kernels/engine/tape.h"

namespace saccade {

/// Sums per position, sequence after sequence in double, so that parts of a batch add up to the same bits as the whole:
///   sums_t ← sums_t + Σ_s x_st
/// x [S·T] or [S, T], f32 or f64   sums f64 [T]. No gradient.
/// Source: this project (losses by position).
/// Throws std::invalid_argument where sums are not f64 or T does not divide the size of x.
void add_position_sums(Tape& tape, const Tensor& x, const Tensor& sums);

}  // namespace saccade
