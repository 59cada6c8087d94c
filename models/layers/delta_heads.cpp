#include "models/layers/delta_heads.h"

#include <cmath>

#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/l2_norm/l2_norm.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/sigmoid_gate/sigmoid_gate.h"
#include "models/layers/head_probe.h"
#include "models/layers/initialise.h"
#include "models/layers/masked_write.h"

namespace saccade {

namespace {
constexpr double kUnitEpsilon = 1e-6;
}

DeltaHeads::DeltaHeads(const Sizes& sizes, ParameterMaker& make, int64_t layer) : sizes_(sizes), layer_(layer) {
  const auto matrix = [&](const char* word, int64_t out, int64_t in) {
    return make.normal(layer_name(layer, word), {out, in}, kDeviation);
  };
  const auto conv = [&](const char* word, int64_t channels) {
    return sizes.filter > 0 ? ShortConv(matrix(word, channels, sizes.filter), {}) : ShortConv();
  };
  const int64_t keys = sizes.heads * sizes.keys, values = sizes.heads * sizes.values;
  query_ = matrix("query", keys, sizes.width);
  key_ = matrix("key", keys, sizes.width);
  value_ = matrix("value", values, sizes.width);
  beta_ = matrix("beta", sizes.heads, sizes.width);
  conv_query_ = conv("conv_query", keys);
  conv_key_ = conv("conv_key", keys);
  conv_value_ = conv("conv_value", values);
}

Tensor DeltaHeads::unit_heads(Tape& tape, const Tensor& x) const {
  return l2_norm(tape, x.reshape({x.dim(0), x.dim(1), sizes_.heads, sizes_.keys}), kUnitEpsilon);
}

DeltaRule DeltaHeads::operator()(Tape& tape, const Tensor& x, const Pass& pass, State* state, std::vector<Tensor>& more) const {
  std::vector<Tensor> weights{query_, key_, value_, beta_};
  weights.insert(weights.end(), more.begin(), more.end());
  const std::vector<Tensor> p = linears(tape, x, weights);
  more.assign(p.begin() + 4, p.end());
  const Tensor gate = sigmoid_gate(tape, p[3]);
  DeltaRule rule{.q = unit_heads(tape, conv_query_(tape, p[0], state ? &state->query : nullptr)),
                 .k = unit_heads(tape, conv_key_(tape, p[1], state ? &state->key : nullptr)),
                 .v = conv_value_(tape, p[2], state ? &state->value : nullptr).reshape({x.dim(0), x.dim(1), sizes_.heads, sizes_.values}),
                 .beta = sizes_.negative_eigenvalues ? add(tape, gate, gate) : gate,
                 .scale = fan_in_bound(sizes_.keys)};
  rule.v = without_masked_write(tape, rule.v, pass, layer_);
  if (state) rule.state = {state->s, false, true};
  return rule;
}

std::unique_ptr<DeltaHeads::State> DeltaHeads::begin(Arena& arena, DType dtype, int64_t batch) const {
  auto state = std::make_unique<State>();
  state->query = conv_query_.begin(arena, dtype, batch);
  state->key = conv_key_.begin(arena, dtype, batch);
  state->value = conv_value_.begin(arena, dtype, batch);
  state->s = zero_state(arena, {batch, sizes_.heads, sizes_.keys, sizes_.values}, accumulation_dtype(dtype));
  return state;
}

double DeltaHeads::kept() const {
  return static_cast<double>(sizes_.heads * sizes_.keys * sizes_.values + conv_query_.kept() + conv_key_.kept() + conv_value_.kept());
}

void DeltaHeads::report(Tape& tape, const DeltaRule& rule, Probe& probe) const {
  HeadProbe(probe, layer_).signed_weights(tape, {rule.q.dim(0), sizes_.heads, rule.q.dim(1)}, [&](const Sequences& s) {
    return delta_rule_weights(tape, rule, s);
  });
}

}  // namespace saccade
