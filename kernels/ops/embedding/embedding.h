#pragma once
#include "kernels/engine/tape.h"
#include "kernels/engine/token_position.h"

namespace saccade {

/// Token embedding (arXiv:1706.03762, section 3.4, without its factor √D):
///   y_bt = E[token_bt]
/// table E [V, D]   tokens i32 [B, T]   y [B, T, D] of tape.activation_dtype(table)
/// Backward sums in a fixed order (tokens ascending), so it is reproducible.
/// Throws std::invalid_argument where a rank differs from these or tokens are not i32; on the CPU DataError for a token outside
/// 0 … V − 1 (CUDA does not check).
Tensor embedding(Tape& tape, const Tensor& table, const Tensor& tokens);

/// Absolute positions from a trained table (arXiv:1706.03762, section 3.5; arXiv:2505.18522, section 3.1.2):
///   y_bt = x_bt + P[p + t],   p = position.first, or the sequence's own
/// x, y [B, T, D] of one dtype   table P [Tmax, D] of accumulation_dtype(x), Tmax ≥ p + T. Backward holds for p = 0 only.
/// Throws std::invalid_argument where a shape or dtype differs from these.
Tensor add_positions(Tape& tape, const Tensor& x, const Tensor& table, const TokenPosition& position = {});

/// The positions p, p + 1 … of n tokens, as tokens of a table of positions: i32 [1, n]; [B, n] where each
/// sequence has its own.
Tensor position_numbers(Tape& tape, int64_t n, const TokenPosition& position);

}  // namespace saccade
