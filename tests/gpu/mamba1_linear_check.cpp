// Mamba's recurrence with one decay or none (matrix products, no scan) on CUDA against the CPU in double: `mamba1_linear_check [name]`;
// `mamba1_linear_check --bench` measures. Needs a GPU; without one it ends with code 77 (skipped) and says so.
#include "kernels/ops/mamba1/mamba1_scan.h"
#include "tests/gpu/op_table.h"
#include "tests/gpu/op_timing.h"

using namespace saccade;
using namespace saccade::test;

namespace {

using Tensors = std::vector<Tensor>;

struct Sizes {
  int64_t batch, length, channels, states;
  bool decays, state;
};

std::string text(const Sizes& s) {
  return "linear " + std::to_string(s.batch) + "x" + std::to_string(s.length) + " D" + std::to_string(s.channels) + " N" +
         std::to_string(s.states) + (s.decays ? " one" : " none") + (s.state ? " state" : "");
}

Input shifted(Input x, double by) {
  for (double& v : x.values) v += by;
  return x;
}

std::vector<Input> inputs_of(const Sizes& s) {
  const Shape channels{s.batch, s.length, s.channels}, states{s.batch, s.length, s.states};
  std::vector<Input> x{activation(channels, 1),        shifted(activation(channels, 2), -1), activation(channels, 3),
                       activation(states, 4, 0.5),     activation(states, 5, 0.5),           parameter({s.channels}, 6),
                       parameter({s.channels}, 7, 0.3)};
  if (s.state) x.push_back(parameter({s.batch, s.channels, s.states}, 8));
  if (s.decays) {
    x.push_back(parameter({1}, 9));
    x.push_back(shifted(activation({s.batch, s.length}, 10), -2));
    x.push_back(parameter({1}, 11));
  }
  return x;
}

Mamba1Scan scan_of(const Sizes& s, const Tensors& x) {
  size_t next = 7;
  Mamba1Scan in{x[0], x[1], x[2], x[3], x[4], x[5], x[6], {}, {}, {}, {}};
  if (s.state) in.state = {x[next++], true, false};
  if (s.decays) in.a_log = x[next++], in.shared_dt = x[next++], in.shared_bias = x[next++];
  return in;
}

void add_passes(std::vector<OpCase>& cases) {
  for (const Sizes& s : {Sizes{2, 1, 20, 8, true, true},
                         {2, 37, 64, 16, true, false},
                         {2, 37, 30, 16, false, true},
                         {1, 131, 128, 16, true, true},
                         {1, 131, 192, 64, true, true},
                         {1, 64, 128, 4, false, false},
                         {1, 700, 64, 16, true, false}})
    cases.push_back({text(s), inputs_of(s), [s](Tape& t, const Tensors& x) {
                       const Mamba1Output out = mamba1_scan(t, scan_of(s, x));
                       return out.end ? Tensors{out.y, out.end} : Tensors{out.y};
                     }});
}

/// Token by token in place, from a state.
void add_decoding(std::vector<OpCase>& cases) {
  for (bool decays : {true, false}) {
    const Sizes s{2, 1, 128, 16, decays, true};
    cases.push_back({"decode " + text(s), inputs_of(s), [s](Tape& t, const Tensors& x) {
                       Tensors constants = x;
                       for (Tensor& input : constants) input.set_differentiable(false);
                       Mamba1Scan in = scan_of(s, constants);
                       in.state = {in.state.start, false, true};
                       const Tensor first = mamba1_scan(t, in).y, second = mamba1_scan(t, in).y;
                       return Tensors{first, second, in.state.start};
                     }});
  }
}

void bench(Device gpu, const Sizes& s, DType dtype) {
  Arena arena(gpu);
  Tensors x;
  for (const Input& input : inputs_of({1, 1, s.channels, s.states, s.decays, false})) {
    Shape shape = input.shape;
    if (input.kind == Input::Kind::activation) {
      shape = {s.batch, s.length};
      for (int i = 2; i < input.shape.rank(); ++i) shape.push_back(input.shape[i]);
    }
    x.push_back(random_values(arena, shape, input.kind == Input::Kind::activation ? dtype : DType::f32, x.size()));
    x.back().set_differentiable(true);
  }
  const double tokens = static_cast<double>(s.batch * s.length), channels = static_cast<double>(s.channels),
               states = static_cast<double>(s.states), size = dtype == DType::bf16 ? 2 : 4;
  const double flops = tokens * (2 * 64 * states + 2 * 64 * channels + 4 * states * channels), bytes = tokens * size * 4 * channels;
  print_times(std::string("mamba1 ") + to_string(dtype) + " " + text(s),
              time_op(arena, [&](Tape& t) { return mamba1_scan(t, scan_of(s, x)).y; }), {flops, bytes}, {2.5 * flops, 1.75 * bytes});
}

std::vector<OpCase> cases() {
  std::vector<OpCase> all;
  add_passes(all);
  add_decoding(all);
  return all;
}

void bench_all(Device device, const std::string&) {
  for (DType dtype : {DType::bf16, DType::f32})
    for (bool decays : {true, false}) bench(device, {16, 2048, 1536, 16, decays, false}, dtype);
}

}  // namespace

int main(int argc, char** argv) { return check_main(argc, argv, cases, bench_all); }
