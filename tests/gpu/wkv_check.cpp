// The WKV recurrence of RWKV-5 and RWKV-6 on CUDA against the CPU in double. Needs a GPU; without one it ends with code 77 (skipped)
// and says so. --bench: times at the sizes of the 110M presets.
#include "kernels/ops/wkv/wkv.h"

#include "tests/gpu/op_table.h"
#include "tests/gpu/op_timing.h"

using namespace saccade;
using namespace saccade::test;

namespace {

using Tensors = std::vector<Tensor>;

struct Size {
  int64_t batch, length, heads, width;
};

std::string text(const Size& s) {
  return std::to_string(s.batch) + "x" + std::to_string(s.length) + "x" + std::to_string(s.heads) + "x" + std::to_string(s.width);
}

/// Raw decays around `center`.
Input decays(const Size& s, bool per_token, double center) {
  Input w = per_token ? activation({s.batch, s.length, s.heads, s.width}, 4) : parameter({s.heads, s.width}, 4);
  for (double& x : w.values) x += center;
  return w;
}

OpCase wkv_case(const Size& s, bool per_token, bool state, double center = -2) {
  const Shape rows{s.batch, s.length, s.heads, s.width};
  OpCase c{std::string(per_token ? "wkv6 " : "wkv5 ") + text(s) + (state ? " state" : "") + (center > 0 ? " strong" : ""), {}, {}};
  c.inputs = {activation(rows, 1), activation(rows, 2), activation(rows, 3), decays(s, per_token, center),
              parameter({s.heads, s.width}, 5)};
  if (state) c.inputs.push_back(parameter({s.batch, s.heads, s.width * s.width}, 6));
  c.op = [=](Tape& t, const Tensors& x) {
    const Tensor start = state ? x[5].reshape({s.batch, s.heads, s.width, s.width}) : Tensor();
    const Wkv out = wkv(t, x[0], x[1], x[2], x[3], x[4], start);
    return state ? Tensors{out.y, out.state} : Tensors{out.y};
  };
  return c;
}

OpCase weights_case(const Size& s, bool per_token) {
  const Shape rows{s.batch, s.length, s.heads, s.width};
  return {std::string(per_token ? "weights6 " : "weights5 ") + text(s),
          {activation(rows, 1), activation(rows, 2), decays(s, per_token, -2), parameter({s.heads, s.width}, 5)},
          [](Tape& t, const Tensors& x) {
            return Tensors{wkv_weights(t, x[0], x[1], x[2], x[3], 1), wkv_weights(t, x[0], x[1], x[2], x[3], {0, 2})};
          }};
}

std::vector<OpCase> all_cases() {
  std::vector<OpCase> cases;
  for (bool per_token : {false, true}) {
    for (bool state : {false, true})
      for (int64_t length : {1, 37, 64, 131}) cases.push_back(wkv_case({2, length, 3, 64}, per_token, state));
    for (int64_t width : {5, 16, 24, 32, 72, 128, 130}) cases.push_back(wkv_case({2, 37, 2, width}, per_token, true));
    cases.push_back(wkv_case({1, 2048, 2, 64}, per_token, false));
    cases.push_back(wkv_case({1, 1533, 2, 64}, per_token, true));  // in segments
    cases.push_back(wkv_case({2, 1043, 1, 32}, per_token, true));
    cases.push_back(wkv_case({2, 131, 2, 64}, per_token, true, 3));
    cases.push_back(wkv_case({1, 70, 2, 32}, per_token, true, 100));
    for (const int64_t length : {70, 510}) cases.push_back(weights_case({2, length, 3, 64}, per_token));
    cases.push_back(weights_case({2, 37, 2, 24}, per_token));
  }
  return cases;
}

/// Batch 16 of the 110M presets. Least traffic: r, k, v, y (and w), then the same, their gradients and dy.
void bench(Device device, DType dtype, bool per_token) {
  const Size s{16, 2048, 12, 64};
  Arena arena(device);
  const Shape rows{s.batch, s.length, s.heads, s.width}, channels{s.heads, s.width};
  Tensor r = random_values(arena, rows, dtype, 0), k = random_values(arena, rows, dtype, 1), v = random_values(arena, rows, dtype, 2),
         w = per_token ? random_values(arena, rows, dtype, 3, -2) : random_values(arena, channels, DType::f32, 3, -2),
         bonus = random_values(arena, channels, DType::f32, 4);
  for (Tensor* x : {&r, &k, &v, &w, &bonus}) x->set_differentiable(true);
  const double tensor = static_cast<double>(r.bytes()), flops = 4 * static_cast<double>(r.size() * s.width);
  print_times(std::string(per_token ? "wkv6 " : "wkv5 ") + to_string(dtype),
              time_op(arena, [&](Tape& t) { return wkv(t, r, k, v, w, bonus).y; }), {flops, (per_token ? 5 : 4) * tensor},
              {3 * flops, (per_token ? 9 : 7) * tensor});
}

void bench_all(Device device, const std::string&) {
  for (DType dtype : {DType::bf16, DType::f32})
    for (bool per_token : {false, true}) bench(device, dtype, per_token);
}

}  // namespace

int main(int argc, char** argv) { return check_main(argc, argv, all_cases, bench_all); }
