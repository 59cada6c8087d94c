#pragma once
#include <algorithm>

#include "kernels/engine/tape.h"

namespace saccade::cuda {

/// The recurrence of delta_rule and wkv7, head by head: every token removes from the matrix state along one direction and writes to it
/// along another,
///   S_t = w_t ∘ S_{t−1} + b_t (S_{t−1}ᵀ a_t)ᵀ + k_t v_tᵀ,   y_t = S_tᵀ r_t
/// The plain form holds S in registers and goes through the tokens one by one; any length, any width of values, keys up to kMostKeys.
struct RankOneShape {
  static constexpr int64_t kMostKeys = 256;
  static constexpr int64_t kPiece = 32;   ///< tokens per block of the backward pass, whose states are in memory at a time
  static constexpr int64_t kGroup = 64;   ///< most columns of the state per thread block of the backward pass
  static constexpr int64_t kVectors = 5;  ///< gradients of r, log w, a, b, k

  int64_t batch, length, heads, keys, values;

  int64_t batch_heads() const { return batch * heads; }
  int64_t rows() const { return batch * length * heads; }
  int64_t pieces() const { return (length + kPiece - 1) / kPiece; }
  int64_t groups() const { return (values + kGroup - 1) / kGroup; }
};

/// Workspace of the backward pass, f32.
struct RankOneScratch {
  Tensor starts;  ///< states at the starts of the blocks of tokens [B H, blocks, V, K]
  Tensor inside;  ///< states before the tokens of one block [B H, kPiece, V, K]
  Tensor parts;   ///< gradients of r, log w, a, b, k of each group of columns [groups, B T H, 5, K]

  RankOneScratch() = default;
  RankOneScratch(Tape& t, const RankOneShape& s)
      : starts(t.empty({s.batch_heads(), s.pieces(), s.values, s.keys}, DType::f32)),
        inside(t.empty({s.batch_heads(), std::min(s.length, RankOneShape::kPiece), s.values, s.keys}, DType::f32)),
        parts(t.empty({s.groups(), s.rows(), RankOneShape::kVectors, s.keys}, DType::f32)) {}
};

}  // namespace saccade::cuda
