#include "analysis/evaluation/benchmark.h"

#include <algorithm>
#include <span>

#include "analysis/evaluation/timing.h"
#include "kernels/engine/parallel.h"
#include "kernels/engine/random.h"
#include "models/corpus/vocabulary.h"
#include "models/training/plan.h"
#include "models/training/rank_orders.h"
#include "models/training/training_step.h"

namespace saccade {
namespace {

RunConfig config_of(const StepPreset& preset, const BenchmarkOptions& options) {
  nlohmann::json architecture{{"block", preset.block}, {"width", preset.width}, {"layers", preset.layers}};
  if (!preset.mixer.empty()) architecture.update({{"mixer", preset.mixer}, {"heads", preset.heads}, {"mlp_width", preset.mlp_width}});
  architecture.update(preset.settings);
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

}  // namespace

const std::vector<StepPreset>& step_presets() {
  static const std::vector<StepPreset> presets{
      {"2m-cpu", "llama", "attention", 512, 192, 4, 3, 512, 512, 8},
      {"2m", "llama", "attention", 512, 192, 4, 3, 512, 512, 32},
      {"10m", "llama", "attention", 4096, 320, 6, 5, 864, 1024, 32},
      {"110m", "llama", "attention", 32000, 768, 12, 12, 2048, 2048, 32},
      {"2m-cpu-chunk", "llama", "top1_chunk", 512, 192, 4, 3, 512, 512, 8},
      {"2m-cpu-element", "llama", "top1_element", 512, 192, 4, 3, 512, 512, 8},
      {"5m-avey", "avey", "", 4096, 256, 8, 0, 0, 512, 32, {{"split", 32}, {"top_k", 3}}},
      {"153m-avey", "avey", "", 32000, 768, 26, 0, 0, 512, 32, {{"split", 64}, {"top_k", 7}}},
      {"110m-100k", "llama", "attention", 32000, 768, 12, 12, 2048, 102400, 1},
      {"110m-100k-exact", "llama", "top1_chunk", 32000, 768, 12, 12, 2048, 102400, 1, {{"chunk", 128}, {"selection", "exact"}}},
      {"110m-100k-approx", "llama", "top1_chunk", 32000, 768, 12, 12, 2048, 102400, 1, {{"chunk", 128}, {"selection", "approx"}}},
  };
  return presets;
}

StepWork step_work(const StepPreset& preset, const BenchmarkOptions& options) {
  return {preset.name, config_of(preset, options), preset.vocabulary};
}

StepWork step_work(RunConfig config, const BenchmarkOptions& options) {
  config.device = options.device, config.threads = options.threads;
  const int64_t vocabulary = padded_vocabulary(vocabulary_of(config.data.tokenizer), config.data.vocabulary_multiple);
  return {config.name, std::move(config), vocabulary};
}

namespace {

/// A step of random tokens, again and again; with as many targets as a batch can have.
class TimedStep {
 public:
  TimedStep(const StepWork& work, TrainingStep& step)
      : training_(work.config.training), step_(step), targets_(work.config.training.gradient_accumulation * step.most_targets()) {
    const auto fill_targets = [&](std::span<int32_t> all) {
      fill_random(all, work.vocabulary, "targets");
      const auto micro_batch = static_cast<size_t>(micro_batch_tokens(training_));
      for (size_t first = 0; first < all.size(); first += micro_batch) thin_out(all.subspan(first, micro_batch), step.most_targets());
    };
    if (step.ranks().count == 1) {
      fill_random(step.tokens(), work.vocabulary, "tokens");
      fill_targets(step.targets());
      return;
    }
    const Shape all{training_.gradient_accumulation, micro_batch_tokens(training_)};
    batch_ = {host_.allocate(all, DType::i32), host_.allocate(all, DType::i32)};
    fill_random({batch_.tokens.data<int32_t>(), static_cast<size_t>(all.size())}, work.vocabulary, "tokens");
    fill_targets({batch_.targets.data<int32_t>(), static_cast<size_t>(all.size())});
  }

  void operator()() {
    const int64_t count = training_.gradient_accumulation;
    if (step_.ranks().count > 1) {
      rank_orders::step(step_, {++number_, count, targets_, kLearningRate}, batch_);
      return;
    }
    step_.begin(count, targets_);
    for (int64_t i = 0; i < count; ++i) step_.forward_backward();
    step_.gradient_norm();
    step_.update(kLearningRate, ++number_);
  }

 private:
  static constexpr double kLearningRate = 3e-4;
  const TrainingConfig& training_;
  TrainingStep& step_;
  const int64_t targets_;  ///< of a step
  Arena host_{Device::cpu()};
  rank_orders::Batch batch_;
  int64_t number_ = 0;
};

}  // namespace

StepBenchmark benchmark_step(const StepWork& work, const BenchmarkOptions& options, const Ranks& ranks) {
  use_threads(options.threads, ranks.local_count);
  if (ranks.count > 1) rank_orders::begin(*ranks.communicator, work.config, work.vocabulary);
  TrainingStep step(work.config, work.vocabulary, parse_device(rank_device(options.device, ranks)), ranks);
  TimedStep once(work, step);
  const Device device = step.arena().device();
  StepBenchmark result{work, {}, step.model().parameter_count(), thread_count(), device, 0, 0, {}, ranks.count};
  struct Capturing {  // also after what does not fit
    explicit Capturing(bool on) { cuda::CapturedGraph::set_enabled(on); }
    ~Capturing() { cuda::CapturedGraph::set_enabled(true); }
  };
  int64_t calls = 0;
  const auto reset = [&] {
    step.tape().set_profiling(options.profile);
    step.tape().reset_cost();
  };
  {
    const Capturing capturing(!options.profile);
    result.step = measure(work.name, options, device, {[&] { once(); }, [&] { result.loss = step.measures().loss; }, reset}, calls);
  }
  // A replayed step counts nothing; the plan counts the same.
  const Plan plan = make_plan(work.config, work.vocabulary, ranks);
  result.step.cost = {plan.flops_per_step, plan.bytes_per_step};
  result.peak_bytes = step.arena().peak_extent();
  result.profile = profile_of(step.tape().profile(), calls);
  return result;
}

StepBenchmark refused_step(const StepWork& work, const BenchmarkOptions& options, const Ranks& ranks, std::string refusal) {
  StepBenchmark result;
  result.work = work, result.device = parse_device(rank_device(options.device, ranks)), result.ranks = ranks.count;
  result.refusal = std::move(refusal);
  return result;
}

StepBenchmark benchmark_step_if_it_fits(const StepWork& work, const BenchmarkOptions& options, const Ranks& ranks) {
  const std::string too_large = refusal_of([&] {
    const Plan plan = make_plan(work.config, work.vocabulary, ranks);
    const int64_t needed = plan.peak_bytes + plan.runtime_bytes;
    if (needed > plan.memory.available)
      throw DeviceError("a step takes " + std::to_string(needed >> 20) + " MiB, " + std::to_string(plan.memory.available >> 20) +
                        " MiB are free");
  });
  if (!too_large.empty()) return refused_step(work, options, ranks, too_large);
  if (ranks.count > 1) return benchmark_step(work, options, ranks);  // the others would wait for a step that failed here
  StepBenchmark result;
  const std::string refusal = refusal_of([&] { result = benchmark_step(work, options, ranks); });
  return refusal.empty() ? result : refused_step(work, options, ranks, refusal);
}

int64_t whole_sequences(int64_t step_tokens, int64_t length, int64_t micro_batches) {
  const int64_t unit = length * micro_batches;
  return std::max<int64_t>(1, (step_tokens + unit / 2) / unit) * unit;
}

}  // namespace saccade
