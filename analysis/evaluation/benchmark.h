#pragma once
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "kernels/engine/error.h"
#include "kernels/engine/tape.h"
#include "models/config/config.h"
#include "models/json.h"
#include "models/training/ranks.h"

namespace saccade {

/// A training step that is timed: an architecture with the sizes of its batch. The same names and sizes stand in
/// tests/bench/peers/tpp_step.py.
struct StepPreset {
  std::string name;
  std::string block, mixer;  ///< mixer empty: a whole architecture, without heads and mlp_width
  int64_t vocabulary = 0, width = 0, layers = 0, heads = 0, mlp_width = 0, length = 0, batch = 0;
  nlohmann::json settings = nlohmann::json::object();  ///< of the architecture, besides
};
const std::vector<StepPreset>& step_presets();

/// " 2m-cpu 2m 10m"
template <class Preset>
std::string names_of(const std::vector<Preset>& presets) {
  std::string names;
  for (const Preset& preset : presets) names += " " + preset.name;
  return names;
}
/// Throws UsageError that lists the names.
template <class Preset>
const Preset& preset_of(const std::vector<Preset>& presets, const std::string& name) {
  for (const Preset& preset : presets)
    if (preset.name == name) return preset;
  throw UsageError("preset is \"" + name + "\", expected one of" + names_of(presets));
}

struct BenchmarkOptions {
  std::string device = "cpu";
  int64_t threads = 0;  ///< 0: all cores
  int warmup = 2, repeats = 5;
  bool profile = false;           ///< time per op as well; costs a little
  std::vector<std::string> only;  ///< names of ops; empty: all
};

/// Wall time of one thing, over the repeats after the warm-up. On a GPU a repeat is as many calls in a row as take about 50 ms,
/// and is waited for at its end.
struct Timing {
  std::string name;
  double median = 0, fastest = 0, slowest = 0;  ///< seconds
  Cost cost;                                    ///< of one call
  double gflops_per_second() const { return cost.flops / median / 1e9; }
};

/// What one op takes of something that is timed.
struct OpShare {
  std::string name;
  double calls = 0, seconds = 0;
  Cost cost;
};

/// A training step to time: a whole one with all its accumulations.
struct StepWork {
  std::string name;
  RunConfig config;
  int64_t vocabulary = 0;
};
StepWork step_work(const StepPreset& preset, const BenchmarkOptions& options);
/// The step of a config; device and threads are those of `options`. Throws UsageError, DataError.
StepWork step_work(RunConfig config, const BenchmarkOptions& options);

struct StepBenchmark {
  StepWork work;
  Timing step;  ///< forward, backward, clipping and AdamW on random tokens
  int64_t parameters = 0, threads = 0;
  Device device;           ///< of rank 0
  int64_t peak_bytes = 0;  ///< of rank 0
  double loss = 0;         ///< of the last step, nats: says that something was computed
  double tokens_per_second() const { return static_cast<double>(work.config.training.batch_tokens) / step.median; }
  std::vector<OpShare> profile;  ///< of one step, longest first; empty unless asked for
  int ranks = 1;
  std::string refusal = {};  ///< why there are no times: more than the memory that is free, or a length that the model does not take
};
/// With several ranks on rank 0, while the others follow: a step of all of them, the way of its tokens to them included.
StepBenchmark benchmark_step(const StepWork& work, const BenchmarkOptions& options, const Ranks& ranks = {});
/// A step that was not timed, and why.
StepBenchmark refused_step(const StepWork& work, const BenchmarkOptions& options, const Ranks& ranks, std::string refusal);
/// As benchmark_step(), but what does not fit is said in `refusal`: more than the memory that is free by the plan, or as it turns out on
/// one rank.
StepBenchmark benchmark_step_if_it_fits(const StepWork& work, const BenchmarkOptions& options, const Ranks& ranks = {});

/// Tokens of a step of whole sequences of `length` tokens that is nearest to `step_tokens`: one sequence at least, and a multiple of so
/// many micro-batches.
int64_t whole_sequences(int64_t step_tokens, int64_t length, int64_t micro_batches = 1);

/// Runs a measurement; why it does not fit, or is longer than the model reads, is said: empty where it went.
template <class F>
std::string refusal_of(F&& measure) {
  try {
    measure();
    return {};
  } catch (const UsageError& error) {
    return error.what();
  } catch (const DeviceError& error) {
    return error.what();
  } catch (const std::bad_alloc&) {
    return "out of memory";
  }
}

/// Forward and backward of single ops at the sizes of a preset: products, norm, gate, loss, attention and its selections.
std::vector<Timing> benchmark_ops(const StepPreset& preset, const BenchmarkOptions& options);

}  // namespace saccade
