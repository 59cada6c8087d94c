#include "models/layers/channel_mix.h"

#include <algorithm>

#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/token_shift/token_shift.h"
#include "models/layers/initialise.h"
#include "models/layers/rwkv_depth.h"

namespace saccade {
namespace {

/// Initial blend of a channel, as each form stores it.
double initial_blend(ChannelMix::Form form, const RwkvDepth& depth, uint64_t channel) {
  if (form == ChannelMix::Form::rwkv5) return depth.curve(channel, depth.rest());
  return 1 - depth.curve(channel, std::pow(depth.rest(), form == ChannelMix::Form::rwkv6 ? 3 : 4));
}

}  // namespace

ChannelMix::Form ChannelMix::parse(const std::string& number) {
  if (number == "5") return Form::rwkv5;
  return number == "6" ? Form::rwkv6 : Form::rwkv7;
}

int64_t ChannelMix::usual_width(Form form, int64_t width) {
  return form == Form::rwkv7 ? 4 * width : std::max<int64_t>(32, 7 * width / 2 / 32 * 32);
}

ChannelMix::ChannelMix(const ModelShape& shape, Form form, int64_t inner, ParameterMaker& make, int64_t layer) : form_(form) {
  const RwkvDepth depth{layer, shape.layers, shape.width};
  const auto name = [&](const char* part) { return layer_name(layer, std::string("channel_") + part); };
  const auto blend = [&](const char* part) {
    return make.formula(name(part), {shape.width}, [=](uint64_t i) { return initial_blend(form, depth, i); });
  };
  mix_key_ = blend("mix_key");
  key_ = make.orthogonal(name("key"), {inner, shape.width}, 1);
  value_ = make.zeros(name("value"), {shape.width, inner});
  if (form == Form::rwkv7) return;
  mix_receptance_ = blend("mix_receptance");
  receptance_ = make.zeros(name("receptance"), {shape.width, shape.width});
}

Tensor ChannelMix::operator()(Tape& tape, const Tensor& x, const Tensor& before) const {
  std::vector<Tensor> blends{mix_key_};
  if (receptance_) blends.push_back(mix_receptance_);
  const std::vector<Tensor> shifted =
      token_shift(tape, x, before, blends, form_ == Form::rwkv5 ? ShiftWeight::current : ShiftWeight::previous);
  const Tensor out = linear(tape, activate(tape, linear(tape, shifted[0], key_), Activation::relu2), value_);
  return receptance_ ? gated(tape, linear(tape, shifted[1], receptance_), out, Activation::sigmoid) : out;
}

}  // namespace saccade
