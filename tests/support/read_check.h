#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/gradient.h"

namespace saccade::test {

/// The first output of an op in double, without gradients.
inline Array first_output(const Op& op, const std::vector<Array>& inputs) {
  Arena arena(Device::cpu());
  Tape tape(arena, false);
  std::vector<Tensor> x;
  for (const Array& input : inputs) x.push_back(to_tensor(input, DType::f64, arena));
  return to_array(op(tape, x).front());
}

/// Reads of a recurrence against their definition: its outputs [B, T, H, W] are linear in the values, `inputs[values]` of the same shape,
/// and ∂o_t/∂v_j is the weight of j on t. `weights` makes those of sequence 1, [H, T, T]. The largest difference over heads, t and the
/// given j.
inline double worst_read_error(const Op& op, const Op& weights, std::vector<Array> inputs, size_t values,
                               const std::vector<int64_t>& positions) {
  const Shape shape = inputs[values].shape;
  const int64_t T = shape[1], H = shape[2], W = shape[3];
  const auto at = [&](int64_t t, int64_t h) { return static_cast<size_t>(((T + t) * H + h) * W + 1); };
  const Array before = first_output(op, inputs), read = first_output(weights, inputs);
  double worst = 0;
  for (int64_t j : positions)
    for (int64_t h = 0; h < H; ++h) {
      std::vector<Array> moved = inputs;
      moved[values].values[at(j, h)] += 0.5;
      const Array after = first_output(op, moved);
      for (int64_t t = 0; t < T; ++t) {
        const double slope = (after.values[at(t, h)] - before.values[at(t, h)]) / 0.5;
        worst = std::max(worst, std::abs(slope - read.values[static_cast<size_t>((h * T + t) * T + j)]));
      }
    }
  return worst;
}

}  // namespace saccade::test
