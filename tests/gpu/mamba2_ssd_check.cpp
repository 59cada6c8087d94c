// Mamba-2's recurrence on CUDA against the CPU in double: `mamba2_ssd_check [name]`; `mamba2_ssd_check --bench` measures.
// Needs a GPU; without one it ends with code 77 (skipped) and says so.
#include "kernels/ops/mamba2/mamba2_ssd.h"
#include "tests/gpu/op_table.h"
#include "tests/gpu/op_timing.h"

using namespace saccade;
using namespace saccade::test;

namespace {

using Tensors = std::vector<Tensor>;

enum class Decay { full, one, none };

struct Sizes {
  int64_t batch, length, heads, groups, keys, width;
  Decay decay = Decay::full;
  bool state = false;
  double a_log = 0.5;  ///< mean: decays of e^{−Δ e^{a_log}}
};

std::string text(const Sizes& s) {
  std::string name = "ssd " + std::to_string(s.batch) + "x" + std::to_string(s.length) + " H" + std::to_string(s.heads) + " G" +
                     std::to_string(s.groups) + " N" + std::to_string(s.keys) + " P" + std::to_string(s.width);
  if (s.decay != Decay::full) name += s.decay == Decay::one ? " one" : " none";
  if (s.a_log > 1) name += " strong";
  return name + (s.state ? " state" : "");
}

Input shifted(Input x, double by) {
  for (double& v : x.values) v += by;
  return x;
}

std::vector<Input> inputs_of(const Sizes& s) {
  const Shape keys{s.batch, s.length, s.groups, s.keys};
  std::vector<Input> x{activation({s.batch, s.length, s.heads, s.width}, 1),
                       shifted(activation({s.batch, s.length, s.heads}, 2), -1),
                       activation(keys, 3, 0.5),
                       activation(keys, 4, 0.5),
                       parameter({s.heads}, 5),
                       parameter({s.heads}, 6, 0.3)};
  if (s.state) x.push_back(parameter({s.batch, s.heads, s.keys, s.width}, 7));
  if (s.decay == Decay::full) x.push_back(shifted(parameter({s.heads}, 8, 0.5), s.a_log));
  if (s.decay == Decay::one) {
    x.push_back(parameter({1}, 9));
    x.push_back(shifted(activation({s.batch, s.length}, 10), -2));
    x.push_back(parameter({1}, 11));
  }
  return x;
}

Mamba2Ssd ssd_of(const Sizes& s, const Tensors& x) {
  size_t next = 6;
  Mamba2Ssd in{x[0], x[1], x[2], x[3], x[4], x[5], {}, {}, {}, {}};
  if (s.state) in.state = {x[next++], true, false};
  if (s.decay != Decay::none) in.a_log = x[next++];
  if (s.decay == Decay::one) in.shared_dt = x[next++], in.shared_bias = x[next++];
  return in;
}

void add_passes(std::vector<OpCase>& cases) {
  const Sizes all[] = {{2, 1, 2, 1, 8, 8},
                       {2, 37, 3, 1, 12, 20},
                       {2, 37, 4, 2, 64, 32, Decay::full, true},
                       {1, 64, 8, 1, 64, 32},
                       {1, 131, 3, 1, 128, 64, Decay::full, true},
                       {1, 131, 2, 2, 128, 64, Decay::one, true},
                       {2, 131, 2, 1, 64, 32, Decay::none, true},
                       {1, 200, 4, 2, 16, 64, Decay::one},
                       {2, 100, 2, 1, 64, 64, Decay::full, true},
                       {1, 70, 4, 2, 80, 32, Decay::full, true},
                       {1, 100, 2, 1, 70, 130, Decay::none},
                       {2, 131, 3, 1, 128, 64, Decay::full, true, 3},
                       {2, 131, 3, 1, 20, 24, Decay::full, true, 3},
                       {1, 2048, 3, 1, 128, 64},
                       {1, 2048, 2, 1, 64, 32, Decay::one},
                       {1, 1100, 2, 1, 128, 64, Decay::full, true},
                       {2, 1600, 2, 2, 72, 64, Decay::one, true},
                       {1, 1600, 2, 1, 64, 32, Decay::none, true}};
  for (const Sizes& s : all)
    cases.push_back({text(s), inputs_of(s), [s](Tape& t, const Tensors& x) {
                       const Mamba2Output out = mamba2_ssd(t, ssd_of(s, x));
                       return out.end ? Tensors{out.y, out.end} : Tensors{out.y};
                     }});
}

/// Token by token in place, from a state.
void add_decoding(std::vector<OpCase>& cases) {
  for (const auto& [width, keys] : {std::pair<int64_t, int64_t>{64, 128}, {32, 64}, {20, 12}}) {
    const Sizes s{2, 1, 4, 2, keys, width, Decay::full, true};
    cases.push_back({"decode" + text(s), inputs_of(s), [s](Tape& t, const Tensors& x) {
                       Mamba2Ssd in = ssd_of(s, x);
                       for (Tensor* input : {&in.x, &in.dt, &in.b, &in.c, &in.skip, &in.dt_bias, &in.a_log, &in.state.start})
                         input->set_differentiable(false);
                       in.state = {in.state.start, false, true};
                       const Tensor first = mamba2_ssd(t, in).y, second = mamba2_ssd(t, in).y;
                       return Tensors{first, second, in.state.start};
                     }});
  }
}

void add_weights(std::vector<OpCase>& cases) {
  for (const Sizes& s : {Sizes{2, 131, 4, 2, 16, 8},
                         {2, 510, 4, 1, 128, 64},
                         {2, 300, 4, 2, 72, 64, Decay::one},
                         {2, 37, 4, 1, 16, 8, Decay::one},
                         {2, 33, 4, 1, 16, 8, Decay::none}})
    cases.push_back({"weights " + text(s), inputs_of(s), [s](Tape& t, const Tensors& x) {
                       return Tensors{mamba2_weights(t, ssd_of(s, x), 1), mamba2_weights(t, ssd_of(s, x), {0, 2})};
                     }});
}

void bench(Device gpu, const Sizes& s, DType dtype) {
  Arena arena(gpu);
  Tensors x;
  for (Input& input : inputs_of({1, 1, s.heads, s.groups, s.keys, s.width})) {
    Shape shape = input.shape;
    if (input.kind == Input::Kind::activation) {
      shape = {s.batch, s.length};
      for (int i = 2; i < input.shape.rank(); ++i) shape.push_back(input.shape[i]);
    }
    x.push_back(random_values(arena, shape, input.kind == Input::Kind::activation ? dtype : DType::f32, x.size()));
    x.back().set_differentiable(true);
  }
  const double tokens = static_cast<double>(s.batch * s.length), chunk = 64, values = static_cast<double>(s.heads * s.width),
               keys = static_cast<double>(s.keys), groups = static_cast<double>(s.groups), size = dtype == DType::bf16 ? 2 : 4;
  const double flops = tokens * (2 * chunk * keys * groups + 2 * chunk * values + 4 * keys * values);
  const double bytes = tokens * size * (2 * values + 2 * keys * groups);
  print_times(std::string("mamba2_ssd ") + to_string(dtype) + " " + text(s).substr(4),
              time_op(arena, [&](Tape& t) { return mamba2_ssd(t, ssd_of(s, x)).y; }), {flops, bytes},
              {2.5 * flops + 0.5 * tokens * keys * values, 2.5 * bytes});
}

std::vector<OpCase> cases() {
  std::vector<OpCase> all;
  add_passes(all);
  add_decoding(all);
  add_weights(all);
  return all;
}

void bench_all(Device device, const std::string&) {
  for (DType dtype : {DType::bf16, DType::f32})
    for (const Sizes& s : {Sizes{16, 2048, 24, 1, 128, 64}, {32, 512, 8, 1, 64, 32}}) bench(device, s, dtype);
  for (const Sizes& s : {Sizes{50, 2048, 24, 1, 128, 64}, {1, 102400, 24, 1, 128, 64}}) bench(device, s, DType::bf16);
}

}  // namespace

int main(int argc, char** argv) { return check_main(argc, argv, cases, bench_all); }
