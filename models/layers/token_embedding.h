#pragma once
#include "models/mixer.h"

namespace saccade {

/// x_t = E[token_t], + P[t] where positions are absolute.
class TokenEmbedding {
 public:
  /// Parameters `embedding` [V, D] and, with absolute positions, `position` [Tmax, D].
  TokenEmbedding(const ModelShape& shape, ParameterMaker& make);
  /// Of a table [V, D] that a block makes itself; no positions.
  explicit TokenEmbedding(Tensor table) : table_(std::move(table)) {}

  /// i32 [B, T] → [B, T, D], from a position on.
  Tensor operator()(Tape& tape, const Tensor& tokens, const TokenPosition& position = {}) const;
  /// Throws UsageError when the position table is shorter than a sequence shall get.
  void check_capacity(int64_t capacity) const;
  const Tensor& table() const { return table_; }

 private:
  Tensor table_, positions_;
};

}  // namespace saccade
