#include "tests/gpu/stateful_parts_bench.h"

#include "kernels/engine/transfer.h"
#include "kernels/ops/causal_conv/causal_conv.h"
#include "kernels/ops/gated_norm/gated_norm.h"
#include "kernels/ops/group_norm/group_norm.h"
#include "kernels/ops/l2_norm/l2_norm.h"
#include "kernels/ops/log_decay/log_decay.h"
#include "kernels/ops/rwkv7/rwkv7_gates.h"
#include "kernels/ops/sigmoid_gate/sigmoid_gate.h"
#include "kernels/ops/split/split.h"
#include "kernels/ops/token_shift/token_shift.h"

using namespace saccade;

namespace {

using Tensors = std::vector<Tensor>;

struct Timed {
  const char* name;
  std::vector<Shape> activations, parameters;
  std::function<Tensors(Tape&, const Tensors& x, const Tensors& p)> op;
};

constexpr int64_t kBatch = 16, kLength = 2048, kWidth = 768;

Tensors filled(Arena& arena, const std::vector<Shape>& shapes, DType dtype) {
  Tensors x;
  for (const Shape& shape : shapes) {
    x.push_back(arena.allocate(shape, dtype));
    fill_zero(x.back());
    x.back().set_differentiable(true);
  }
  return x;
}

void time_op(const Timed& timed) {
  Arena arena(Device::cuda(0));
  const Tensors x = filled(arena, timed.activations, DType::bf16), p = filled(arena, timed.parameters, DType::f32);
  std::map<std::string, Tape::OpTime> best;
  for (int run = 0; run < 6; ++run) {
    Tape tape(arena, true);
    tape.set_profiling(true);
    std::vector<std::pair<Tensor, Tensor>> seeds;
    for (const Tensor& y : timed.op(tape, x, p)) {
      seeds.emplace_back(y, arena.allocate(y.shape(), y.dtype()));
      fill_zero(seeds.back().second);
    }
    tape.backward(seeds);
    for (const auto& [name, time] : tape.profile())
      if (!best.contains(name) || time.seconds < best[name].seconds) best[name] = time;
  }
  for (const auto& [name, time] : best)
    std::printf("%-28s %-32s %8.1f us %6.2f TB/s\n", timed.name, name.c_str(), time.seconds * 1e6, time.cost.bytes / time.seconds / 1e12);
  std::fflush(stdout);
}

}  // namespace

void stateful_parts_bench(const std::string& only) {
  const Shape x{kBatch, kLength, kWidth}, wide{kBatch, kLength, 2 * kWidth}, mamba2{kBatch, kLength, 2 * kWidth + 256};
  const Shape heads{kBatch, kLength, 12, 64}, keys{kBatch, kLength, 8, 96}, values{kBatch, kLength, 6, 192}, gates{kBatch, kLength, 6};
  const Activation silu = Activation::silu;
  const std::vector<Timed> all{
      {"conv 768",
       {x},
       {{kWidth, 4}},
       [=](Tape& t, const Tensors& a, const Tensors& p) { return Tensors{causal_conv(t, a[0], p[0], {}, silu)}; }},
      {"conv 1792",
       {mamba2},
       {{1792, 4}, {1792}},
       [=](Tape& t, const Tensors& a, const Tensors& p) { return Tensors{causal_conv(t, a[0], p[0], p[1], silu)}; }},
      {"split 1792",
       {mamba2},
       {},
       [](Tape& t, const Tensors& a, const Tensors&) {
         return split(t, a[0], {1536, 128, 128});
       }},
      {"l2 norm 8x96", {keys}, {}, [](Tape& t, const Tensors& a, const Tensors&) { return Tensors{l2_norm(t, a[0], 1e-6)}; }},
      {"unit norm 12x64",
       {heads},
       {{12, 64}},
       [](Tape& t, const Tensors& a, const Tensors& p) { return Tensors{unit_norm(t, a[0], p[0], 1e-12)}; }},
      {"group norm 12x64",
       {x},
       {{kWidth}, {kWidth}},
       [](Tape& t, const Tensors& a, const Tensors& p) { return Tensors{group_norm(t, a[0], p[0], p[1], 12, 64e-5)}; }},
      {"gate last 6x192",
       {values, values},
       {{192}},
       [](Tape& t, const Tensors& a, const Tensors& p) { return Tensors{rms_norm_before_gate(t, a[0], a[1], p[0], 1e-6)}; }},
      {"gate first 1536",
       {wide, wide},
       {{1536}},
       [](Tape& t, const Tensors& a, const Tensors& p) { return Tensors{rms_norm_after_gate(t, a[0], a[1], p[0], 1, 1e-5)}; }},
      {"log decay",
       {gates},
       {{6}, {6}},
       [](Tape& t, const Tensors& a, const Tensors& p) { return Tensors{log_decay(t, a[0], p[0], p[1])}; }},
      {"sigmoid gate", {gates}, {}, [](Tape& t, const Tensors& a, const Tensors&) { return Tensors{sigmoid_gate(t, a[0])}; }},
      {"shift, 6 blends",
       {x},
       std::vector<Shape>(6, Shape{kWidth}),
       [](Tape& t, const Tensors& a, const Tensors& p) { return token_shift(t, a[0], {}, p, ShiftWeight::previous); }},
      {"shift, 5 blends by token",
       std::vector<Shape>(6, x),
       {},
       [](Tape& t, const Tensors& a, const Tensors&) {
         return token_shift(t, a[0], {}, Tensors(a.begin() + 1, a.end()), ShiftWeight::previous);
       }},
      {"shift, 1 blend",
       {x},
       {{kWidth}},
       [](Tape& t, const Tensors& a, const Tensors& p) { return token_shift(t, a[0], {}, p, ShiftWeight::previous); }},
      {"rwkv7 gates",
       std::vector<Shape>(4, x),
       {{kWidth}},
       [](Tape& t, const Tensors& a, const Tensors& p) {
         const Rwkv7Gates g = rwkv7_gates(t, a[0], a[1], a[2], a[3], p[0]);
         return Tensors{g.log_w, g.k, g.a, g.b};
       }},
      {"rwkv7 output",
       std::vector<Shape>(5, x),
       {{12, 64}},
       [](Tape& t, const Tensors& a, const Tensors& p) { return Tensors{rwkv7_output(t, a[0], a[1], a[2], a[3], a[4], p[0])}; }},
      {"blend values",
       std::vector<Shape>(3, x),
       {},
       [](Tape& t, const Tensors& a, const Tensors&) { return Tensors{blend_values(t, a[0], a[1], a[2])}; }},
  };
  for (const Timed& timed : all)
    if (std::string(timed.name).find(only) != std::string::npos) time_op(timed);
}
