#include "models/layers/low_rank.h"

#include <algorithm>
#include <cmath>

#include "kernels/ops/linear/linear.h"
#include "models/layers/initialise.h"

namespace saccade {

Tensor LowRank::operator()(Tape& tape, const Tensor& x, Activation f) const {
  const Tensor low = linear(tape, x, down);
  return linear(tape, f == Activation::none ? low : activate(tape, low, f), up, start);
}

LowRank make_low_rank(ParameterMaker& make, const std::string& name, int64_t width, int64_t rank,
                      const std::function<double(uint64_t)>& start) {
  LowRank low;
  if (start) low.start = make.formula(name, {width}, start);
  low.down = make.zeros(name + "_down", {rank, width});
  low.up = make.orthogonal(name + "_up", {width, rank}, 0.1);
  return low;
}

int64_t low_rank(int64_t set, double factor, int64_t width) {
  if (set > 0) return set;
  return std::max<int64_t>(32, 32 * static_cast<int64_t>(std::nearbyint(factor * std::sqrt(static_cast<double>(width)) / 32)));
}

Tensor rwkv7_blend(ParameterMaker& make, const RwkvDepth& depth, const std::string& part, double factor) {
  return make.formula(layer_name(depth.layer, part), {depth.width}, [=](uint64_t i) { return 1 - depth.curve(i, factor * depth.rest()); });
}

LowRank rwkv7_value_blend(ParameterMaker& make, const RwkvDepth& depth, int64_t rank) {
  return make_low_rank(make, layer_name(depth.layer, "value_blend"), depth.width, low_rank(rank, 1.7, depth.width),
                       [=](uint64_t i) { return 0.73 - 0.4 * (depth.place(i) - 0.5); });
}

LowRank rwkv7_output_gate(ParameterMaker& make, const RwkvDepth& depth, int64_t rank) {
  return make_low_rank(make, layer_name(depth.layer, "output_gate"), depth.width, low_rank(rank, 5, depth.width), {});
}

}  // namespace saccade
