#include "models/layers/rwkv_heads.h"

#include "kernels/ops/group_norm/group_norm.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/token_shift/token_shift.h"
#include "models/layers/head_probe.h"
#include "models/layers/initialise.h"
#include "models/layers/short_conv.h"

namespace saccade {

RwkvHeads::RwkvHeads(const ModelShape& shape, ParameterMaker& make, int64_t layer)
    : depth_{layer, shape.layers, shape.width}, heads_(shape.heads) {
  group_weight_ = make.constant(name("group_gain"), {shape.width}, depth_.group_gain());
  group_bias_ = make.constant(name("group_bias"), {shape.width}, 0);
  output_ = make.zeros(name("output"), {shape.width, shape.width});
}

Tensor RwkvHeads::split(const Tensor& x) const { return x.reshape({x.dim(0), x.dim(1), heads_, width() / heads_}); }

Tensor RwkvHeads::norm(Tape& tape, const Tensor& y) const {
  return group_norm(tape, y.reshape({y.dim(0), y.dim(1), width()}), group_weight_, group_bias_, heads_, kGroupEpsilon);
}

Tensor RwkvHeads::output(Tape& tape, const Tensor& y) const { return linear(tape, y, output_); }

Tensor RwkvHeads::formula(ParameterMaker& make, const std::string& part, const Shape& shape,
                          const std::function<double(uint64_t)>& value) const {
  return make.formula(name(part), shape, value);
}

Tensor RwkvHeads::matrix(ParameterMaker& make, const std::string& part, double gain) const {
  return make.orthogonal(name(part), {width(), width()}, gain);
}

std::string RwkvHeads::name(const std::string& part) const { return layer_name(depth_.layer, part); }

void RwkvHeads::keep(Tape& tape, const RwkvState& state, const Tensor& x, const Tensor& end) {
  replace_state(tape, state.before, last_token(tape, x));
  replace_state(tape, state.state, end);
}

std::unique_ptr<LayerState> RwkvHeads::begin(Arena& arena, DType dtype, int64_t batch) const {
  auto state = std::make_unique<RwkvState>();
  state->before = zero_state(arena, {batch, width()}, dtype);
  state->state = zero_state(arena, {batch, heads_, width() / heads_, width() / heads_}, accumulation_dtype(dtype));
  return state;
}

double RwkvHeads::state_values_per_token(int64_t length) const {
  return static_cast<double>(width() * (width() / heads_ + 1)) / static_cast<double>(length);
}

void RwkvHeads::report(Tape& tape, Probe& probe, const Tensor& y, const HeadProbe::Weights& weights) const {
  HeadProbe(probe, depth_.layer).signed_weights(tape, {y.dim(0), heads_, y.dim(1)}, weights);
}

}  // namespace saccade
