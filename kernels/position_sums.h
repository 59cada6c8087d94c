#pragma once
#include "kernels/tape.h"

namespace saccade {

/// sums_t += Σ_s x_st, sequence after sequence in double, so that pieces of a batch add up to the same bits as the whole.
/// x [S·T] or [S, T], f32 or f64; sums f64 [T]. No gradient.
void add_position_sums(Tape& tape, const Tensor& x, const Tensor& sums);

}  // namespace saccade
