#pragma once
#include "models/architectures/registry.h"

namespace saccade {

/// x_t = E[token_t], + P[t] where positions are absolute.
class TokenEmbedding {
 public:
  /// Parameters `embedding` [V, D] and, with absolute positions, `position` [Tmax, D].
  TokenEmbedding(const ModelShape& shape, ParameterMaker& make);

  Tensor operator()(Tape& tape, const Tensor& tokens) const;  ///< i32 [B, T] → [B, T, D]
  const Tensor& table() const { return table_; }

 private:
  Tensor table_, positions_;
};

}  // namespace saccade
