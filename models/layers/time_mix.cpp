#include "models/layers/time_mix.h"

#include "kernels/ops/group_norm/group_norm.h"
#include "kernels/ops/rwkv7/rwkv7_gates.h"
#include "kernels/ops/token_shift/token_shift.h"
#include "models/layers/initialise.h"

namespace saccade {

TimeMix::TimeMix(const ModelShape& shape, ParameterMaker& make, int64_t layer) : heads_(shape.heads) {
  if (shape.mixer_inputs == "plain") return;
  const RwkvDepth depth{layer, shape.layers, shape.width};
  blends_ = {rwkv7_blend(make, depth, "mix_query", 0.2), rwkv7_blend(make, depth, "mix_key", 0.7),
             rwkv7_blend(make, depth, "mix_value", 0.7)};
  if (shape.mixer_inputs != "full") return;
  blends_.push_back(rwkv7_blend(make, depth, "mix_gate", 0.2));
  if (shape.nth(kBlendedValues, layer) > 0) value_blend_ = rwkv7_value_blend(make, depth, 0);
  gate_ = rwkv7_output_gate(make, depth, 0);
  group_gain_ = make.constant(layer_name(layer, "group_gain"), {shape.width}, depth.group_gain());
  group_bias_ = make.constant(layer_name(layer, "group_bias"), {shape.width}, 0);
}

TimeMix::Inputs TimeMix::inputs(Tape& tape, const Tensor& x, const Tensor& before) const {
  const std::vector<Tensor> shifted = token_shift(tape, x, before, blends_, ShiftWeight::previous);
  Inputs in{shifted[0], shifted[1], shifted[2], {}};
  if (gate_.down) in.gate = gate_(tape, shifted[3], Activation::sigmoid);
  return in;
}

Tensor TimeMix::values(Tape& tape, const Tensor& v, const Tensor& x_v, Pass& pass) const {
  if (!gate_.down) return v;
  if (!value_blend_.down) return pass.first_values = v;
  return blend_values(tape, v, pass.first_values, value_blend_(tape, x_v, Activation::none));
}

Tensor TimeMix::gated_output(Tape& tape, const Tensor& o, const Tensor& gate) const {
  return gated(tape, gate, group_norm(tape, o, group_gain_, group_bias_, heads_, kGroupEpsilon), Activation::none);
}

}  // namespace saccade
