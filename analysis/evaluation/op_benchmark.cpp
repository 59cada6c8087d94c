#include <algorithm>
#include <cmath>

#include "analysis/evaluation/timing.h"
#include "kernels/engine/random.h"
#include "kernels/engine/transfer.h"
#include "kernels/ops/attention/attention.h"
#include "kernels/ops/cross_entropy/cross_entropy.h"
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/norm/norm.h"
#include "kernels/ops/top1_chunk/top1_chunk.h"
#include "kernels/ops/top1_element/top1_element.h"
#include "models/training/training_step.h"

namespace saccade {
namespace {

using Tensors = std::vector<Tensor>;

/// An op at the sizes of a preset; its inputs are made when it is timed.
struct OpWork {
  std::string name;
  std::vector<Shape> activations, parameters;
  std::function<Tensor(Tape&, const Tensors& x, const Tensors& w)> op;
  bool backward = true;
};

std::vector<OpWork> ops_of(const StepPreset& p) {
  const int64_t rows = p.batch * p.length, head = p.width / p.heads;
  const Shape x{rows, p.width}, inner{rows, p.mlp_width}, heads{p.batch, p.length, p.heads, head};
  const std::vector<Shape> qkv{heads, heads, heads};
  const ScoreOptions score{1 / std::sqrt(static_cast<double>(head)), 0, false};
  const auto product = [](Tape& t, const Tensors& in, const Tensors& w) { return linear(t, in[0], w[0]); };
  const auto dense = [=](Tape& t, const Tensors& in, const Tensors&) { return attention(t, in[0], in[1], in[2], score).o; };
  const auto chunked = [=, chunk = p.settings.value("chunk", int64_t{128})](ChunkSelection selection) {
    return [=](Tape& t, const Tensors& in, const Tensors&) {
      return top1_chunk(t, in[0], in[1], in[2], score, {chunk, 1, false, selection, 0}).o;
    };
  };
  return {
      {"linear width x width", {x}, {{p.width, p.width}}, product},
      {"linear width x mlp", {x}, {{p.mlp_width, p.width}}, product},
      {"rms_norm", {x}, {{p.width}}, [](Tape& t, const Tensors& in, const Tensors& w) { return rms_norm(t, in[0], w[0], 1e-5); }},
      {"gated gelu",
       {inner, inner},
       {},
       [](Tape& t, const Tensors& in, const Tensors&) { return gated(t, in[0], in[1], Activation::gelu); }},
      {"linear_cross_entropy",
       {x},
       {{p.vocabulary, p.width}},
       [=](Tape& t, const Tensors& in, const Tensors& w) {
         const Tensor targets = t.empty({rows}, DType::i32);
         fill_zero(targets);
         return linear_cross_entropy(t, in[0], w[0], targets).mean;
       }},
      {"attention forward", qkv, {}, dense, false},
      {"attention", qkv, {}, dense},
      {"top1_element", qkv, {}, [=](Tape& t, const Tensors& in, const Tensors&) { return top1_element(t, in[0], in[1], in[2], score).o; }},
      {"top1_chunk exact", qkv, {}, chunked(ChunkSelection::exact)},
      {"top1_chunk approx", qkv, {}, chunked(ChunkSelection::approx)}};
}

/// Normal numbers that take a gradient; from a row of a prime length, so that large tensors are made soon.
Tensor random_tensor(Arena& arena, const Shape& shape, DType dtype, const std::string& stream) {
  constexpr int64_t kPeriod = 1048573;
  const Random random(1, stream);
  std::vector<double> values(static_cast<size_t>(shape.size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = i < kPeriod ? random.normal(i) : values[i - kPeriod];
  const Tensor x = arena.allocate(shape, dtype);
  from_doubles(x, values);
  return x;
}

Timing benchmark(const OpWork& work, const BenchmarkOptions& options, Device device) {
  Arena arena(device);
  Tape tape(arena, work.backward);
  const DType type = device.is_cuda() ? DType::bf16 : DType::f32;
  Tensors x, w, copies;
  for (const Shape& shape : work.activations) x.push_back(random_tensor(arena, shape, type, "x" + std::to_string(x.size())));
  for (const Shape& shape : work.parameters) {
    w.push_back(random_tensor(arena, shape, DType::f32, "w" + std::to_string(w.size())));
    if (type != DType::bf16 || shape.rank() != 2) continue;
    copies.push_back(random_tensor(arena, shape, type, "w" + std::to_string(w.size() - 1)));
    tape.bind_compute_copy(w.back(), copies.back());
  }
  for (Tensors* inputs : {&x, &w})
    for (Tensor& t : *inputs) t.set_differentiable(work.backward);
  const auto once = [&] {
    const Tensor y = work.op(tape, x, w);
    if (!work.backward) return;
    tape.backward({{y, y}});
    tape.clear();
  };
  int64_t calls = 0;
  Timing timing = measure(work.name, options, device, {once, [&] { wait(device); }, [&] { tape.reset_cost(); }}, calls);
  timing.cost = {tape.cost().flops / static_cast<double>(calls), tape.cost().bytes / static_cast<double>(calls)};
  return timing;
}

}  // namespace

std::vector<Timing> benchmark_ops(const StepPreset& preset, const BenchmarkOptions& options) {
  if (preset.heads == 0) throw UsageError("preset " + preset.name + " is a whole architecture; expected one with heads for --ops");
  use_threads(options.threads);
  const Device device = parse_device(options.device);
  std::vector<Timing> timings;
  std::string names;
  for (const OpWork& work : ops_of(preset)) {
    names += (names.empty() ? "" : ", ") + work.name;
    if (options.only.empty() || std::find(options.only.begin(), options.only.end(), work.name) != options.only.end())
      timings.push_back(benchmark(work, options, device));
  }
  if (timings.empty()) throw UsageError("no such op; expected one of " + names);
  return timings;
}

}  // namespace saccade
