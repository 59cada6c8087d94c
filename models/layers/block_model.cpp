#include "models/layers/block_model.h"

#include "kernels/ops/elementwise/elementwise.h"

namespace saccade {

BlockModel::BlockModel(TokenEmbedding embedding) : output_(embedding.table()), embedding_(std::move(embedding)) {}

Tensor BlockModel::hidden(Tape& tape, const Tensor& tokens, Probe* probe) const {
  Pass pass{probe, {}};
  return run(tape, tokens, pass, nullptr);
}

DecodingState BlockModel::begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const {
  embedding_.check_capacity(capacity);
  DecodingState state = DecodingState::empty(arena, batch, capacity);
  for (size_t l = 0; l < mixers_.size(); ++l) state.layers.push_back(begin_layer(l, arena, dtype, batch, capacity));
  return state;
}

Tensor BlockModel::extend(Tape& tape, const Tensor& tokens, DecodingState& state) const {
  Pass pass = state.pass(tokens.dim(1));
  const Tensor x = run(tape, tokens, pass, &state);
  state.advance(tape, tokens.dim(1));
  return x;
}

double BlockModel::state_values_per_token() const {
  double sum = 0;
  for (const auto& mixer : mixers_) sum += mixer->state_values_per_token();
  return sum;
}

Tensor BlockModel::embed(Tape& tape, const Tensor& tokens, const TokenPosition& position) const {
  return embedding_(tape, tokens, position);
}

std::unique_ptr<LayerState> BlockModel::begin_layer(size_t layer, Arena& arena, DType dtype, int64_t batch, int64_t capacity) const {
  return mixers_[layer]->begin(arena, dtype, batch, capacity);
}

Tensor BlockModel::run(Tape& tape, const Tensor& tokens, Pass& pass, const DecodingState* state) const {
  const bool trimmed = state && state->last_only && state->batch == 1 && tokens.dim(1) > 1;
  Tensor x = embed(tape, tokens, pass.position);
  for (size_t l = 0; l < mixers_.size(); ++l) {
    LayerState* kept = state ? state->layers[l].get() : nullptr;
    pass.last_only = trimmed && l + 1 == mixers_.size();
    x = run_block(tape, x, pass, [=, this, &tape](const Tensor& in, Pass& p) { return block(tape, l, in, p, kept); });
  }
  return final_norm(tape, x);
}

Tensor BlockModel::mixed(Tape& tape, size_t layer, const Tensor& u, Pass& pass, LayerState* state) const {
  const Mixer& mixer = *mixers_[layer];
  return state ? mixer.extend(tape, u, pass, *state) : mixer.forward(tape, u, pass);
}

Tensor BlockModel::add_mixed(Tape& tape, size_t layer, const Tensor& x, const Tensor& u, Pass& pass, LayerState* state) const {
  pass.residual = x;
  const Tensor y = mixed(tape, layer, u, pass, state);
  const Tensor left = pass.take_residual(y.dim(1));
  const Tensor sum = left ? add(tape, left, y) : y;
  return pass.last_only && sum.dim(1) > 1 ? last_row(sum) : sum;
}

}  // namespace saccade
