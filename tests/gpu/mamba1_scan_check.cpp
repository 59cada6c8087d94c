// The selective scan of Mamba on CUDA against the CPU in double. Needs a GPU; without one it ends with code 77 (skipped) and says so.
// --bench: times at the sizes of the 110M preset.
#include "kernels/ops/mamba1/mamba1_scan.h"

#include "tests/gpu/op_table.h"
#include "tests/gpu/op_timing.h"

using namespace saccade;
using namespace saccade::test;

namespace {

using Tensors = std::vector<Tensor>;

struct Size {
  int64_t batch, length, width, states;
};

std::string text(const Size& s) {
  return std::to_string(s.batch) + "x" + std::to_string(s.length) + "x" + std::to_string(s.width) + "x" + std::to_string(s.states);
}

Mamba1Scan arguments(const Tensors& x) {
  return {.u = x[0], .dt = x[1], .z = x[2], .b = x[3], .c = x[4], .skip = x[5], .dt_bias = x[6], .a_log = x[7]};
}

/// `drive` is added to dt, `rate` to A_log.
std::vector<Input> inputs(const Size& s, double drive = -2, double rate = 0) {
  const Shape rows{s.batch, s.length, s.width}, pairs{s.batch, s.length, s.states};
  std::vector<Input> x{activation(rows, 1),  activation(rows, 2),     activation(rows, 3),     activation(pairs, 4),
                       activation(pairs, 5), parameter({s.width}, 6), parameter({s.width}, 7), parameter({s.width, s.states}, 8, 0.5)};
  for (double& v : x[1].values) v += drive;
  for (double& v : x[7].values) v += rate;
  return x;
}

OpCase scan_case(const Size& s, bool state, double drive = -2, double rate = 0) {
  OpCase c{"scan " + text(s) + (state ? " state" : "") + (drive > 0 ? " strong" : ""), inputs(s, drive, rate), {}};
  if (state) c.inputs.push_back(parameter({s.batch * s.width, 1, s.states}, 9));
  c.op = [=](Tape& t, const Tensors& x) {
    Mamba1Scan in = arguments(x);
    if (state) in.state = {x[8].reshape({s.batch, s.width, s.states}), true, false};
    const Mamba1Output out = mamba1_scan(t, in);
    return state ? Tensors{out.y, out.end} : Tensors{out.y};
  };
  return c;
}

/// The ablations: one decay for all channels of a token, or none.
Mamba1Scan ablated(const Tensors& x, bool one) {
  Mamba1Scan in{.u = x[0], .dt = x[1], .z = x[2], .b = x[3], .c = x[4], .skip = x[5], .dt_bias = x[6]};
  if (one) in.a_log = x[7], in.shared_dt = x[8], in.shared_bias = x[9];
  return in;
}
std::vector<Input> ablated_inputs(const Size& s, bool one) {
  std::vector<Input> x = inputs(s);
  x.pop_back();
  if (one) {
    // the gradients of the decay's two parameters are sums over tokens: of draws 9 to 39 this one cancels least at 37 tokens
    for (const Input& in : {parameter({1}, 8), activation({s.batch, s.length}, 20), parameter({1}, 10)}) x.push_back(in);
    x[7].values = {-1};
  }
  return x;
}
OpCase ablation_case(const Size& s, bool one, bool state) {
  OpCase c{(one ? "one decay " : "no decay ") + text(s) + (state ? " state" : ""), ablated_inputs(s, one), {}};
  if (state) c.inputs.push_back(parameter({s.batch * s.width, 1, s.states}, 9));
  c.op = [=](Tape& t, const Tensors& x) {
    Mamba1Scan in = ablated(x, one);
    if (state) in.state = {x.back().reshape({s.batch, s.width, s.states}), true, false};
    const Mamba1Output out = mamba1_scan(t, in);
    return state ? Tensors{out.y, out.end} : Tensors{out.y};
  };
  return c;
}
OpCase ablated_weights_case(const Size& s, bool one) {
  return {(one ? "one decay weights " : "no decay weights ") + text(s), ablated_inputs(s, one), [=](Tape& t, const Tensors& x) {
            return Tensors{mamba1_weights(t, ablated(x, one), 1, {0, 3}), mamba1_weights(t, ablated(x, one), {0, 2}, {0, 3})};
          }};
}

OpCase weights_case(const Size& s) {
  return {"weights " + text(s), inputs(s), [](Tape& t, const Tensors& x) {
            return Tensors{mamba1_weights(t, arguments(x), 1, {0, 3}), mamba1_weights(t, arguments(x), {0, 2}, {0, 3})};
          }};
}

std::vector<OpCase> all_cases() {
  std::vector<OpCase> cases;
  for (bool state : {false, true})
    for (int64_t length : {1, 37, 64, 131}) cases.push_back(scan_case({2, length, 70, 16}, state));
  for (const auto& [width, states] : {std::pair<int64_t, int64_t>{3, 5}, {33, 1}, {40, 24}, {19, 64}, {9, 100}, {5, 300}})
    cases.push_back(scan_case({2, 37, width, states}, true));
  for (const Size& s : {Size{1, 2048, 33, 16}, {1, 1499, 32, 16}, {2, 1009, 70, 5}, {1, 419, 9, 100}, {400, 257, 6, 16}})
    for (bool state : {false, true}) cases.push_back(scan_case(s, state));
  for (int64_t length : {131, 1009}) cases.push_back(scan_case({2, length, 40, 16}, true, 60, 3));
  for (bool one : {false, true}) {
    for (const Size& s : {Size{2, 1, 70, 16}, {2, 37, 33, 5}, {2, 131, 40, 64}}) cases.push_back(ablation_case(s, one, s.length < 100));
    cases.push_back(ablated_weights_case({2, 37, 20, 16}, one));
  }
  cases.push_back(weights_case({2, 70, 20, 16}));
  cases.push_back(weights_case({2, 37, 20, 50}));
  return cases;
}

/// y and the last state of a whole sequence, or token after token with the state in place.
std::vector<double> decode(const Size& s, Device device, DType dtype, bool by_token) {
  Arena arena(device);
  Tape tape(arena, false);
  const std::vector<Input> given = inputs(s);
  const auto tensor = [&](const Input& in, int64_t begin, int64_t end) {
    const int64_t row = in.shape[-1];
    std::vector<double> values;
    for (int64_t b = 0; b < s.batch; ++b)
      values.insert(values.end(), in.values.begin() + (b * s.length + begin) * row, in.values.begin() + (b * s.length + end) * row);
    const Tensor x = arena.allocate({s.batch, end - begin, row}, dtype);
    from_doubles(x, values);
    return x;
  };
  const auto whole = [&](const Input& in) {
    const Tensor x = arena.allocate(in.shape, dtype);
    from_doubles(x, in.values);
    return x;
  };
  const Tensor state = tape.zeros({s.batch, s.width, s.states}, dtype);
  std::vector<double> result;
  for (int64_t t = 0; t < s.length; t += by_token ? 1 : s.length) {
    Tensors x;
    for (size_t i = 0; i < given.size(); ++i)
      x.push_back(given[i].shape.rank() == 3 ? tensor(given[i], t, by_token ? t + 1 : s.length) : whole(given[i]));
    Mamba1Scan in = arguments(x);
    in.state = {state, false, true};
    const std::vector<double> y = to_doubles(mamba1_scan(tape, in).y);
    if (by_token || s.length == 1) result.insert(result.end(), y.begin(), y.end());
  }
  const std::vector<double> end = to_doubles(state);
  result.insert(result.end(), end.begin(), end.end());
  return result;
}

/// Token after token on the GPU as on the CPU, and to the same state as a whole sequence.
int check_decoding(Device device) {
  const Size s{2, 19, 70, 16};
  const std::vector<double> truth = decode(s, Device::cpu(), DType::f64, true), made = decode(s, device, DType::f32, true),
                            end = decode(s, device, DType::f32, false);
  const double by_token = difference(made, truth),
               at_once = difference(end, {truth.end() - static_cast<std::ptrdiff_t>(end.size()), truth.end()});
  const bool failed = !(by_token <= 2e-5) || !(at_once <= 2e-5);
  std::printf("decoding off by %.1e, at once %.1e%s\n", by_token, at_once, failed ? " FAILED" : "");
  return failed ? 1 : 0;
}

/// Batch 16 of the 110M preset. Least traffic: u, dt, z, y, then the same with their gradients and dy.
void bench(Device device, DType dtype) {
  const Size s{16, 2048, 1536, 16};
  Arena arena(device);
  const Shape rows{s.batch, s.length, s.width}, pairs{s.batch, s.length, s.states}, channels{s.width};
  Tensors x{random_values(arena, rows, dtype, 0),          random_values(arena, rows, dtype, 1, -4),
            random_values(arena, rows, dtype, 2),          random_values(arena, pairs, dtype, 3),
            random_values(arena, pairs, dtype, 4),         random_values(arena, channels, DType::f32, 5),
            random_values(arena, channels, DType::f32, 6), random_values(arena, {s.width, s.states}, DType::f32, 7)};
  for (Tensor& input : x) input.set_differentiable(true);
  const double tensor = static_cast<double>(x[0].bytes()), flops = 8 * static_cast<double>(x[0].size() * s.states);
  print_times(std::string("mamba1_scan ") + to_string(dtype), time_op(arena, [&](Tape& t) { return mamba1_scan(t, arguments(x)).y; }),
              {flops, 4 * tensor}, {3 * flops, 7 * tensor});
}

void bench_all(Device device, const std::string&) {
  for (DType dtype : {DType::bf16, DType::f32}) bench(device, dtype);
}

}  // namespace

int main(int argc, char** argv) { return check_main(argc, argv, all_cases, bench_all, check_decoding); }
