// The delta rule on CUDA against the CPU in double: `delta_rule_check [name]`; with --bench [name] its times at the sizes of the
// 110M presets. Needs a GPU; without one it ends with code 77 (skipped) and says so.
#include "kernels/ops/delta_rule/delta_rule.h"

#include "tests/gpu/op_bench.h"

using namespace saccade;
using namespace saccade::test;

namespace {

using Tensors = std::vector<Tensor>;

struct Sizes {
  int64_t batch, length, heads, keys, values;
  bool gated;
  enum Kind { plain, similar_keys, strong_decay } kind = plain;
};

std::string text(const Sizes& s) {
  std::string name = (s.gated ? "gated " : "delta ") + std::to_string(s.batch);
  for (int64_t n : {s.length, s.heads, s.keys, s.values}) name += "x" + std::to_string(n);
  return name + (s.kind == Sizes::similar_keys ? " similar keys" : s.kind == Sizes::strong_decay ? " strong decay" : "");
}

/// Unit vectors; with `common` they point the same way, nearly.
Input unit_rows(const Shape& shape, uint64_t seed, double common) {
  Input x = activation(shape, seed);
  const auto width = static_cast<size_t>(shape[-1]);
  for (size_t row = 0; row < x.values.size(); row += width) {
    double square = 0;
    for (size_t i = 0; i < width; ++i) {
      x.values[row + i] += common;
      square += x.values[row + i] * x.values[row + i];
    }
    for (size_t i = 0; i < width; ++i) x.values[row + i] /= std::sqrt(square);
  }
  return x;
}

Input mapped(Input x, const std::function<double(double)>& f) {
  for (double& v : x.values) v = f(v);
  return x;
}

/// q, k, v, β and, when gated, g.
std::vector<Input> inputs(const Sizes& s) {
  const Shape keys{s.batch, s.length, s.heads, s.keys}, tokens{s.batch, s.length, s.heads};
  const double common = s.kind == Sizes::similar_keys ? 3 : 0, decay = s.kind == Sizes::strong_decay ? 20 : 0.1;
  std::vector<Input> x{unit_rows(keys, 1, common), unit_rows(keys, 2, common), activation({s.batch, s.length, s.heads, s.values}, 3),
                       mapped(parameter(tokens, 4), [](double v) { return 1 / (1 + std::exp(-v)); })};
  if (s.gated) x.push_back(mapped(parameter(tokens, 5), [=](double v) { return -decay * std::log1p(std::exp(v)); }));
  return x;
}

DeltaRule rule(const Tensors& x, bool gated) {
  DeltaRule in{.q = x[0], .k = x[1], .v = x[2], .beta = x[3], .scale = 1 / std::sqrt(static_cast<double>(x[0].dim(3)))};
  if (gated) in.g = x[4];
  return in;
}

OpCase from_zeros(const Sizes& s) {
  OpCase c{text(s), inputs(s), [gated = s.gated](Tape& t, const Tensors& x) { return Tensors{delta_rule(t, rule(x, gated)).o}; }};
  // Nearly parallel keys: rounding errors of one write reach the next. Twice what bf16_checks.py prints.
  if (s.kind == Sizes::similar_keys) c.output_limit = s.gated ? 2e-2 : 3e-2, c.gradient_limit = s.gated ? 3.4e-2 : 4.8e-2;
  return c;
}

OpCase carried(const Sizes& s) {
  OpCase c{text(s) + " carried", inputs(s), {}};
  c.inputs.push_back(parameter({s.batch, s.heads, s.keys, s.values}, 6));
  c.op = [gated = s.gated](Tape& t, const Tensors& x) {
    DeltaRule in = rule(x, gated);
    in.state = {x.back(), true, false};
    const DeltaRuleOutput out = delta_rule(t, in);
    return Tensors{out.o, out.end};
  };
  return c;
}

/// The same tokens twice, the state in place.
OpCase decoding(const Sizes& s) {
  OpCase c = carried(s);
  c.name = text(s) + " in place";
  c.op = [gated = s.gated](Tape& t, Tensors x) {
    for (Tensor& input : x) input.set_differentiable(false);
    DeltaRule in = rule(x, gated);
    in.state = {x.back(), false, true};
    const Tensor first = delta_rule(t, in).o, second = delta_rule(t, in).o;
    return Tensors{first, second, x.back()};
  };
  return c;
}

OpCase weights(const Sizes& s) {
  return {text(s) + " weights", inputs(s), [gated = s.gated](Tape& t, const Tensors& x) {
            return Tensors{delta_rule_weights(t, rule(x, gated), 1), delta_rule_weights(t, rule(x, gated), {0, 2})};
          }};
}

std::vector<OpCase> cases() {
  std::vector<OpCase> c;
  for (const bool gated : {false, true}) {
    for (const auto& [length, keys, values] : {std::array<int64_t, 3>{1, 96, 96},
                                               {37, 96, 96},
                                               {37, 24, 40},
                                               {64, 96, 192},
                                               {64, 32, 32},
                                               {131, 64, 64},
                                               {131, 96, 192},
                                               {70, 5, 130},
                                               {131, 128, 64},
                                               {20, 200, 9}})
      c.push_back(from_zeros({2, length, 3, keys, values, gated}));
    for (const Sizes& s : {Sizes{2, 1, 3, 96, 96, gated},
                           {2, 37, 2, 32, 64, gated},
                           {2, 131, 2, 96, 96, gated},
                           {1, 70, 2, 12, 20, gated},
                           {1, 2509, 1, 96, 96, gated},
                           {2, 2093, 1, 64, 32, gated}})
      c.push_back(carried(s));
    for (const Sizes& s : {Sizes{2, 1, 3, 96, 192, gated}, {2, 3, 2, 32, 64, gated}}) c.push_back(decoding(s));
    for (const int64_t length : {75, 510}) c.push_back(weights({2, length, 3, 96, 96, gated}));
    c.push_back(from_zeros({1, 2048, 2, gated ? 96 : 64, 96, gated}));
    c.push_back(from_zeros({2, 200, 2, 96, 96, gated, Sizes::similar_keys}));
  }
  c.push_back(from_zeros({2, 200, 2, 64, 96, true, Sizes::strong_decay}));
  return c;
}

void bench(Device device, const std::string& only) {
  for (const Sizes& s : {Sizes{1, 2048, 8, 96, 96, false}, {1, 2048, 6, 96, 192, true}})
    if (text(s).find(only) != std::string::npos) bench_case(from_zeros(s), 16, device);
}

}  // namespace

int main(int argc, char** argv) { return check_main(argc, argv, cases, bench); }
