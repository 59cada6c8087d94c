#pragma once
#include <algorithm>

#include "kernels/tape.h"

namespace saccade::cuda {

/// What delta_rule and wkv7 have in common, head by head: a matrix state from which every token removes along one direction and to
/// which it writes along another,
///   S_t = w_t ∘ S_{t−1} + b_t (S_{t−1}ᵀ a_t)ᵀ + k_t v_tᵀ,   y_t = S_tᵀ r_t
/// The plain form keeps S in registers and walks the tokens; any length, any width of values, keys up to kMostKeys.
struct RankOneShape {
  static constexpr int64_t kMostKeys = 256;
  static constexpr int64_t kPiece = 32;   ///< the backward pass keeps the states of the tokens of one piece at a time
  static constexpr int64_t kGroup = 64;   ///< columns of the state that one block takes back, at most
  static constexpr int64_t kVectors = 5;  ///< gradients of r, log w, a, b, k

  int64_t batch, length, heads, keys, values;

  int64_t lines() const { return batch * heads; }
  int64_t rows() const { return batch * length * heads; }
  int64_t pieces() const { return (length + kPiece - 1) / kPiece; }
  int64_t groups() const { return (values + kGroup - 1) / kGroup; }
};

/// Scratch of the backward pass, f32.
struct RankOneScratch {
  Tensor starts;  ///< states where pieces begin [B H, pieces, V, K]
  Tensor inside;  ///< states before the tokens of a piece [B H, piece, V, K]
  Tensor parts;   ///< gradients of r, log w, a, b, k of each group of columns [groups, B T H, 5, K]

  RankOneScratch() = default;
  RankOneScratch(Tape& t, const RankOneShape& s)
      : starts(t.empty({s.lines(), s.pieces(), s.values, s.keys}, DType::f32)),
        inside(t.empty({s.lines(), std::min(s.length, RankOneShape::kPiece), s.values, s.keys}, DType::f32)),
        parts(t.empty({s.groups(), s.rows(), RankOneShape::kVectors, s.keys}, DType::f32)) {}
};

}  // namespace saccade::cuda
