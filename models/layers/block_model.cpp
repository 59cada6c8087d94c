#include "models/layers/block_model.h"

#include "kernels/ops/elementwise/elementwise.h"

namespace saccade {

std::unique_ptr<LayerState> Block::begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const {
  return mixer_->begin(arena, dtype, batch, capacity);
}

double Block::state_values_per_token() const { return mixer_->state_values_per_token(); }

Tensor Block::mixed(Tape& tape, const Tensor& u, Pass& pass, LayerState* state) const {
  return state ? mixer_->extend(tape, u, pass, *state) : mixer_->forward(tape, u, pass);
}

Tensor Block::add_mixed(Tape& tape, const Tensor& x, const Tensor& u, Pass& pass, LayerState* state) const {
  pass.residual = x;
  const Tensor y = mixed(tape, u, pass, state);
  const Tensor left = pass.take_residual(y.dim(1));
  const Tensor sum = left ? add(tape, left, y) : y;
  return pass.last_only && sum.dim(1) > 1 ? last_row(sum) : sum;
}

Tensor Stem::embed(Tape& tape, const Tensor& tokens, const TokenPosition& position) const { return embedding_(tape, tokens, position); }

BlockModel::BlockModel(std::unique_ptr<Stem> stem, int64_t layers, ParameterMaker& make, const MakeBlock& make_block)
    : stem_(std::move(stem)) {
  for (int64_t l = 0; l < layers; ++l) blocks_.push_back(make_block(make, l));
  stem_->finish(make);
  parameters_ = make.take();
}

Tensor BlockModel::hidden(Tape& tape, const Tensor& tokens, Probe* probe) const {
  Pass pass{probe, {}};
  return run(tape, tokens, pass, nullptr);
}

DecodingState BlockModel::begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const {
  stem_->check_capacity(capacity);
  DecodingState state = DecodingState::empty(arena, batch, capacity);
  for (const auto& block : blocks_) state.layers.push_back(block->begin(arena, dtype, batch, capacity));
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
  for (const auto& block : blocks_) sum += block->state_values_per_token();
  return sum;
}

Tensor BlockModel::run(Tape& tape, const Tensor& tokens, Pass& pass, const DecodingState* state) const {
  const bool trimmed = state && state->last_only && state->batch == 1 && tokens.dim(1) > 1;
  Tensor x = stem_->embed(tape, tokens, pass.position);
  for (size_t l = 0; l < blocks_.size(); ++l) {
    LayerState* kept = state ? state->layers[l].get() : nullptr;
    pass.last_only = trimmed && l + 1 == blocks_.size();
    x = run_block(tape, x, pass, [=, this, &tape](const Tensor& in, Pass& p) { return blocks_[l]->forward(tape, in, p, kept); });
    if (pass.probe) pass.probe->stream(static_cast<int64_t>(l), x);
  }
  return stem_->final_norm(tape, x);
}

}  // namespace saccade
