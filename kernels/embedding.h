#pragma once
#include "kernels/tape.h"
#include "kernels/token_position.h"

namespace saccade {

/// y[b,t] = table[tokens[b,t]]      table [V, D]   tokens i32 [B, T]   y [B, T, D]
/// Backward sums in a fixed order (tokens ascending), so it is reproducible.
Tensor embedding(Tape& tape, const Tensor& table, const Tensor& tokens);

/// y[b,t] = x[b,t] + table[p + t]      x [B, T, D]   table [Tmax, D], Tmax >= p + T; backward for p = 0 only
Tensor add_positions(Tape& tape, const Tensor& x, const Tensor& table, const TokenPosition& position = {});

/// The positions p, p + 1 … of n tokens, as tokens of a table of positions: i32 [1, n].
Tensor position_numbers(Tape& tape, int64_t n, const TokenPosition& position);

}  // namespace saccade
