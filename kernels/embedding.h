#pragma once
#include "kernels/tape.h"

namespace saccade {

/// y[b,t] = table[tokens[b,t]]      table [V, D]   tokens i32 [B, T]   y [B, T, D]
/// Backward sums in a fixed order (tokens ascending), so it is reproducible.
Tensor embedding(Tape& tape, const Tensor& table, const Tensor& tokens);

/// y[b,t] = x[b,t] + table[t]      x [B, T, D]   table [Tmax, D], Tmax >= T
Tensor add_positions(Tape& tape, const Tensor& x, const Tensor& table);

}  // namespace saccade
