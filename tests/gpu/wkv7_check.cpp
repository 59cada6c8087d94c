// RWKV-7's recurrence on CUDA against the CPU in double: `wkv7_check [name]`; with --bench its time at the size of the 110M
// preset. Needs a GPU; without one it ends with code 77 (skipped) and says so.
#include "kernels/ops/wkv7/wkv7.h"

#include "tests/gpu/op_bench.h"

using namespace saccade;
using namespace saccade::test;

namespace {

using Tensors = std::vector<Tensor>;

struct Sizes {
  int64_t batch, length, heads, width;
  double shift = 0;   ///< of the decay's logit: large is the strongest decay there is
  double common = 0;  ///< what all removal keys share
};

std::string text(const Sizes& s) {
  std::string name =
      "wkv7 " + std::to_string(s.batch) + "x" + std::to_string(s.length) + "x" + std::to_string(s.heads) + "x" + std::to_string(s.width);
  if (s.shift > 0) name += " strong decay";
  if (s.common > 0) name += " similar keys";
  return name;
}

/// r, log w, k, v, a = −κ, b = κ ∘ η with unit κ and η in (0, 1), as the model makes them.
std::vector<Input> inputs(const Sizes& s) {
  const Shape shape{s.batch, s.length, s.heads, s.width};
  std::vector<Input> x{activation(shape, 1), parameter(shape, 2),  activation(shape, 3, 0.3),
                       activation(shape, 4), activation(shape, 5), activation(shape, 6)};
  const auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (double& v : x[1].values) v = -std::exp(-0.5) * logistic(v + s.shift - (s.shift > 0 ? 0 : 2));
  const auto width = static_cast<size_t>(s.width);
  for (size_t row = 0; row < x[4].values.size(); row += width) {
    double square = 0;
    for (size_t i = row; i < row + width; ++i) x[4].values[i] += s.common, square += x[4].values[i] * x[4].values[i];
    for (size_t i = row; i < row + width; ++i) {
      const double kappa = x[4].values[i] / std::sqrt(square);
      x[4].values[i] = -kappa;
      x[5].values[i] = kappa * logistic(x[5].values[i]);
    }
  }
  return x;
}

OpCase from_zeros(const Sizes& s) {
  return {text(s), inputs(s), [](Tape& t, const Tensors& x) {
            const Wkv7 out = wkv7(t, x[0], x[1], x[2], x[3], x[4], x[5]);
            return Tensors{out.y, out.state};
          }};
}

OpCase carried(const Sizes& s) {
  OpCase c{text(s) + " carried", inputs(s), {}};
  c.inputs.push_back(parameter({s.batch, s.heads, s.width, s.width}, 7));
  c.op = [](Tape& t, const Tensors& x) {
    const Wkv7 out = wkv7(t, x[0], x[1], x[2], x[3], x[4], x[5], x[6]);
    return Tensors{out.y, out.state};
  };
  return c;
}

OpCase state_only(const Sizes& s) {
  OpCase c = carried(s);
  c.name = text(s) + " state only";
  c.op = [](Tape& t, const Tensors& x) { return Tensors{wkv7(t, x[0], x[1], x[2], x[3], x[4], x[5], x[6]).state}; };
  return c;
}

OpCase weights(const Sizes& s) {
  return {text(s) + " weights", inputs(s), [](Tape& t, const Tensors& x) {
            return Tensors{wkv7_weights(t, x[0], x[1], x[2], x[4], x[5], 1), wkv7_weights(t, x[0], x[1], x[2], x[4], x[5], {0, 2})};
          }};
}

std::vector<OpCase> cases() {
  std::vector<OpCase> c;
  for (const Sizes& s : {Sizes{2, 1, 3, 64},
                         {2, 37, 3, 64},
                         {2, 64, 2, 64},
                         {2, 131, 3, 64},
                         {2, 131, 2, 32},
                         {1, 70, 3, 11},
                         {2, 40, 1, 96},
                         {1, 2048, 2, 64},
                         {2, 200, 2, 64, 8, 0},
                         {2, 200, 2, 64, 0, 3}})
    c.push_back(from_zeros(s));
  for (const Sizes& s : {Sizes{2, 1, 3, 64}, {2, 37, 2, 32}, {2, 131, 2, 64}, {1, 70, 2, 12}, {1, 2509, 2, 64}, {2, 2093, 1, 32}})
    c.push_back(carried(s));
  c.push_back(state_only({2, 131, 2, 64}));
  c.push_back(weights({2, 75, 3, 64}));
  c.push_back(weights({2, 510, 2, 64}));
  return c;
}

}  // namespace

int main(int argc, char** argv) {
  return check_main(argc, argv, cases, [](Device device, const std::string&) { bench_case(from_zeros({1, 2048, 12, 64}), 16, device); });
}
