#include "models/layers/token_embedding.h"

#include "kernels/ops/embedding/embedding.h"
#include "models/layers/initialise.h"

namespace saccade {

TokenEmbedding::TokenEmbedding(const ModelShape& shape, ParameterMaker& make)
    : table_(make.normal("embedding", {shape.vocabulary, shape.width}, kDeviation)) {
  if (shape.position == "absolute") positions_ = make.normal("position", {shape.sequence_length, shape.width}, kDeviation);
}

Tensor TokenEmbedding::operator()(Tape& tape, const Tensor& tokens, const TokenPosition& position) const {
  check_capacity(position.first + tokens.dim(1));
  const Tensor x = embedding(tape, table_, tokens);
  return positions_ ? add_positions(tape, x, positions_, position) : x;
}

void TokenEmbedding::check_capacity(int64_t capacity) const {
  if (positions_ && capacity > positions_.dim(0))
    throw UsageError("a sequence of " + std::to_string(capacity) + " tokens; the positions are trained for " +
                     std::to_string(positions_.dim(0)));
}

}  // namespace saccade
