#include "analysis/evaluation/benchmark.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <span>

#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "kernels/linear.h"
#include "kernels/norm.h"
#include "kernels/parallel.h"
#include "kernels/random.h"
#include "kernels/transfer.h"
#include "models/plan.h"
#include "models/training/training_step.h"

namespace saccade {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Runs `once` and times it. `reset` is called after the warm-up.
Timing measure(const std::string& name, const BenchmarkOptions& options, const std::function<void()>& once,
               const std::function<void()>& reset) {
  for (int i = 0; i < options.warmup; ++i) once();
  reset();
  std::vector<double> seconds;
  for (int i = 0; i < options.repeats; ++i) {
    const double start = now();
    once();
    seconds.push_back(now() - start);
  }
  std::sort(seconds.begin(), seconds.end());
  return {name, seconds[seconds.size() / 2], seconds.front(), seconds.back(), {}};
}

void check(const BenchmarkOptions& options) {
  if (options.warmup < 0 || options.repeats < 1) throw UsageError("a benchmark needs at least one repeat");
}

RunConfig config_of(const StepPreset& preset, const BenchmarkOptions& options) {
  nlohmann::json architecture{{"host", preset.host},     {"mixer", preset.mixer}, {"width", preset.width},
                              {"layers", preset.layers}, {"heads", preset.heads}, {"mlp_width", preset.mlp_width}};
  return resolve_config({{"name", preset.name},
                         {"architecture", architecture},
                         {"data", {{"sequence_length", preset.length}}},
                         {"training", {{"batch_tokens", preset.batch * preset.length}}},
                         {"device", options.device},
                         {"threads", options.threads}},
                        "preset " + preset.name);
}

void fill_random(std::span<int32_t> tokens, int64_t vocabulary, const char* stream) {
  const Random random(1, stream);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(random.below(static_cast<uint64_t>(vocabulary), i));
}

std::vector<StepBenchmark::Op> profile_of(const Tape& tape, int repeats) {
  std::vector<StepBenchmark::Op> ops;
  for (const auto& [name, time] : tape.profile())
    ops.push_back(
        {name, static_cast<double>(time.calls) / repeats, time.seconds / repeats, {time.cost.flops / repeats, time.cost.bytes / repeats}});
  std::sort(ops.begin(), ops.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return ops;
}

/// A normal tensor that takes a gradient.
Tensor random_tensor(Arena& arena, const Shape& shape, DType dtype, const char* stream) {
  Tensor x = arena.allocate(shape, dtype);
  const Random random(1, stream);
  std::vector<double> values(static_cast<size_t>(x.size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = random.normal(i);
  from_doubles(x, values);
  x.set_differentiable(true);
  return x;
}

}  // namespace

const std::vector<StepPreset>& step_presets() {
  static const std::vector<StepPreset> presets{
      {"2m-cpu", "llama", "attention", 512, 192, 4, 3, 512, 512, 8},
      {"2m", "llama", "attention", 512, 192, 4, 3, 512, 512, 32},
      {"10m", "llama", "attention", 4096, 320, 6, 5, 864, 1024, 32},
      {"110m", "llama", "attention", 32000, 768, 12, 12, 2048, 2048, 32},
      {"2m-cpu-chunk", "llama", "top1_chunk", 512, 192, 4, 3, 512, 512, 8},
      {"2m-cpu-element", "llama", "top1_element", 512, 192, 4, 3, 512, 512, 8},
  };
  return presets;
}

const StepPreset& step_preset(const std::string& name) {
  std::string names;
  for (const StepPreset& preset : step_presets()) {
    if (preset.name == name) return preset;
    names += " " + preset.name;
  }
  throw UsageError("preset is \"" + name + "\", expected one of" + names);
}

StepBenchmark benchmark_step(const StepPreset& preset, const BenchmarkOptions& options) {
  check(options);
  use_threads(options.threads);
  TrainingStep step(config_of(preset, options), preset.vocabulary, parse_device(options.device));
  fill_random(step.tokens(), preset.vocabulary, "tokens");
  fill_random(step.targets(), preset.vocabulary, "targets");
  StepBenchmark result{preset, {}, step.model().parameter_count(), thread_count(), 0, 0, {}};
  int64_t count = 0;
  result.step = measure(
      preset.name, options,
      [&] {
        step.begin();
        step.forward_backward();
        step.gradient_norm();
        step.update(3e-4, ++count);
        result.loss = step.measures().loss;
      },
      [&] {
        step.tape().set_profiling(options.profile);
        step.tape().reset_cost();
      });
  // A replayed step counts nothing; the plan counts the same.
  const Plan plan = make_plan(config_of(preset, options), preset.vocabulary);
  result.step.cost = {plan.flops_per_step, plan.bytes_per_step};
  result.peak_bytes = step.arena().peak_used();
  result.profile = profile_of(step.tape(), options.repeats);
  return result;
}

std::vector<Timing> benchmark_ops(const StepPreset& preset, const BenchmarkOptions& options) {
  check(options);
  use_threads(options.threads);
  Arena arena(parse_device(options.device));
  const int64_t rows = preset.batch * preset.length, width = preset.width, inner = preset.mlp_width, head = width / preset.heads;
  Tensor targets = arena.allocate({rows}, DType::i32);
  std::vector<int32_t> wanted(static_cast<size_t>(rows));
  fill_random(wanted, preset.vocabulary, "targets");
  copy_from_host(targets, wanted.data());
  const DType type = arena.device().is_cuda() ? DType::bf16 : DType::f32;  // of activations
  const Tensor x = random_tensor(arena, {rows, width}, type, "x"), gain = random_tensor(arena, {width}, DType::f32, "gain");
  const Tensor table = random_tensor(arena, {preset.vocabulary, width}, DType::f32, "table");
  const Tensor square = random_tensor(arena, {width, width}, DType::f32, "square"),
               up = random_tensor(arena, {inner, width}, DType::f32, "up");
  const Tensor gate = random_tensor(arena, {rows, inner}, type, "gate"), value = random_tensor(arena, {rows, inner}, type, "value");
  const Shape heads{preset.batch, preset.length, preset.heads, head};
  const Tensor q = random_tensor(arena, heads, type, "q"), k = random_tensor(arena, heads, type, "k"),
               v = random_tensor(arena, heads, type, "v");
  ScoreOptions score;
  score.scale = 1 / std::sqrt(static_cast<double>(head));

  const std::vector<Tensor> matrices{table, square, up};
  std::vector<Tensor> copies;
  for (const Tensor& matrix : matrices) {
    if (type != DType::bf16) continue;
    copies.push_back(arena.allocate(matrix.shape(), type));
    from_doubles(copies.back(), to_doubles(matrix));
  }
  std::vector<Timing> timings;
  const auto time = [&](const std::string& name, const std::function<Tensor(Tape&)>& op) {
    Tape tape(arena, true);
    for (size_t i = 0; i < matrices.size(); ++i)
      if (type == DType::bf16) tape.bind_compute_copy(matrices[i], copies[i]);
    timings.push_back(measure(
        name, options,
        [&] {
          const Tensor y = op(tape);
          tape.backward({{y, y}});
          tape.clear();
          wait(arena.device());
        },
        [&] { tape.reset_cost(); }));
    timings.back().cost = {tape.cost().flops / options.repeats, tape.cost().bytes / options.repeats};
  };
  time("linear width x width", [&](Tape& t) { return linear(t, x, square); });
  time("linear width x mlp", [&](Tape& t) { return linear(t, x, up); });
  time("rms_norm", [&](Tape& t) { return rms_norm(t, x, gain, 1e-5); });
  time("gated gelu", [&](Tape& t) { return gated(t, gate, value, Activation::gelu); });
  time("linear_cross_entropy", [&](Tape& t) { return linear_cross_entropy(t, x, table, targets).mean; });
  time("attention", [&](Tape& t) { return attention(t, q, k, v, score).o; });
  return timings;
}

}  // namespace saccade
