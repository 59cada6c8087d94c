#include "analysis/evaluation/decoding_benchmark.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "analysis/evaluation/timing.h"
#include "kernels/engine/clock.h"
#include "kernels/engine/parallel.h"
#include "kernels/engine/random.h"
#include "kernels/engine/transfer.h"
#include "models/architectures/registry.h"
#include "models/corpus/vocabulary.h"
#include "models/training/batch_decoder.h"
#include "models/training/training_step.h"

namespace saccade {
namespace {

constexpr int64_t kWarm = 3;  ///< tokens before those that are timed: as many as capturing a step takes

Timing timing(const std::string& name, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {name, seconds[seconds.size() / 2], seconds.front(), seconds.back(), {}};
}

std::vector<int32_t> random_tokens(int64_t count, int64_t vocabulary) {
  const Random random(1, "tokens");
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(vocabulary), static_cast<uint64_t>(i))));
  return tokens;
}

std::vector<OpShare> profile_of_prompt(InferenceModel& model, const std::vector<int32_t>& tokens) {
  Tape& tape = model.tape();
  const auto earlier = tape.profile();
  Decoder decoder(model, static_cast<int64_t>(tokens.size()));
  tape.set_profiling(true);
  decoder.feed(tokens);
  tape.set_profiling(false);
  auto profile = tape.profile();
  for (const auto& [name, before] : earlier) {
    Tape::OpTime& time = profile.at(name);
    time = {time.calls - before.calls,
            time.seconds - before.seconds,
            {time.cost.flops - before.cost.flops, time.cost.bytes - before.cost.bytes}};
  }
  std::erase_if(profile, [](const auto& op) { return op.second.calls == 0; });
  return profile_of(profile, 1);
}

/// Bytes that a decoder of `sequences` keeps. Throws UsageError where the model does not read so far.
int64_t state_bytes(InferenceModel& model, int64_t sequences, int64_t capacity) {
  Arena plan(Device::plan(model.arena().device().engine));
  const DecodingState state = model.model().begin(plan, model.activations(), sequences, capacity);
  return plan.used();
}

/// Throws DeviceError where so much is not free.
void require_memory(Device device, int64_t bytes) {
  int64_t free = cpu_memory().available;
  if (device.is_cuda())
    for (const Gpu& gpu : gpus())
      if (gpu.index == device.index) free = gpu.memory_free;
  if (bytes > free)
    throw DeviceError("the state takes " + std::to_string(bytes >> 20) + " MiB, " + std::to_string(free >> 20) + " MiB are free");
}

void measure_one(InferenceModel& model, const std::vector<int32_t>& tokens, int64_t more, const BenchmarkOptions& options,
                 DecodingPoint& point) {
  point.state_bytes = state_bytes(model, 1, point.length);
  const int64_t capacity = point.length + kWarm + more;
  require_memory(model.arena().device(), state_bytes(model, 1, capacity));
  std::optional<Decoder> decoder;
  std::vector<double> prompts, singles;
  Cost cost;
  for (int i = 0; i < options.warmup + options.repeats; ++i) {
    decoder.reset();
    decoder.emplace(model, capacity);
    wait(model.arena().device());
    model.tape().reset_cost();
    const double start = now();
    decoder->feed(tokens);
    decoder->logits();
    if (i >= options.warmup) prompts.push_back(now() - start);
    cost = model.tape().cost();
  }
  for (int64_t i = 0; i < kWarm + more; ++i) {
    const double start = now();
    decoder->feed({&tokens[static_cast<size_t>(i % point.length)], 1});
    decoder->logits();
    if (i >= kWarm) singles.push_back(now() - start);
  }
  decoder.reset();
  point.prompt = timing("prompt", prompts), point.token = timing("token", singles);
  point.prompt.cost = cost;
  if (options.profile) point.profile = profile_of_prompt(model, tokens);
}

void measure_batch(InferenceModel& model, const std::vector<int32_t>& tokens, int64_t more, DecodingBatch& batch) {
  const auto length = static_cast<int64_t>(tokens.size()), capacity = length + kWarm + more;
  require_memory(model.arena().device(), state_bytes(model, batch.sequences, capacity));
  BatchDecoder decoder(model, batch.sequences, capacity);
  wait(model.arena().device());
  double start = now();
  for (int64_t b = 0; b < batch.sequences; ++b) decoder.start(b, tokens);
  batch.prefill = now() - start;
  std::vector<double> steps;
  for (int64_t i = 0; i < kWarm + more; ++i) {
    const std::vector<int32_t> next(static_cast<size_t>(batch.sequences), tokens[static_cast<size_t>(i % length)]);
    start = now();
    decoder.feed(next);
    if (i >= kWarm) steps.push_back(now() - start);
  }
  batch.step = timing("step", steps);
  batch.tokens = more;
}

DecodingPoint measure(InferenceModel& model, int64_t vocabulary, int64_t length, const DecodingBenchmarkOptions& work,
                      const BenchmarkOptions& options) {
  const std::vector<int32_t> tokens = random_tokens(length, vocabulary);
  DecodingPoint point;
  point.length = length;
  model.arena().reset_peak();
  point.refusal = refusal_of([&] { measure_one(model, tokens, work.tokens, options, point); });
  point.peak_bytes = model.arena().peak_used();
  for (const int64_t sequences : work.batches) {
    DecodingBatch& batch = point.batches.emplace_back();
    batch.sequences = sequences;
    model.arena().reset_peak();
    batch.refusal = refusal_of([&] { measure_batch(model, tokens, work.tokens, batch); });
    batch.peak_bytes = model.arena().peak_used();
  }
  return point;
}

nlohmann::json transformer(int64_t width, int64_t layers, int64_t heads, int64_t mlp_width, const char* mixer,
                           const char* selection = nullptr) {
  nlohmann::json settings{{"block", "llama"}, {"mixer", mixer}, {"width", width},
                          {"layers", layers}, {"heads", heads}, {"mlp_width", mlp_width}};
  if (selection) settings["selection"] = selection;
  return settings;
}

}  // namespace

const std::vector<DecodingPreset>& decoding_presets() {
  static const std::vector<DecodingPreset> presets{
      {"110m", transformer(768, 12, 12, 2048, "attention"), 32000},
      {"110m-element", transformer(768, 12, 12, 2048, "top1_element"), 32000},
      {"110m-chunk-exact", transformer(768, 12, 12, 2048, "top1_chunk", "exact"), 32000},
      {"110m-chunk-approx", transformer(768, 12, 12, 2048, "top1_chunk", "approx"), 32000},
      {"2m", transformer(192, 4, 3, 512, "attention"), 512},
      {"2m-chunk-approx", transformer(192, 4, 3, 512, "top1_chunk", "approx"), 512},
  };
  return presets;
}

double DecodingBatch::whole_tokens_per_second(int64_t length) const {
  const double steps = static_cast<double>(tokens), all = static_cast<double>(sequences) * (static_cast<double>(length) + steps);
  return all / (prefill + steps * step.median);
}

DecodingPreset decoding_preset(const RunConfig& config) {
  return {config.name, config.architecture, padded_vocabulary(vocabulary_of(config.data.tokenizer), config.data.vocabulary_multiple),
          config.data.sequence_length, config.precision};
}

DecodingBenchmark benchmark_decoding(const DecodingPreset& preset, DecodingBenchmarkOptions work, const BenchmarkOptions& options) {
  if (work.lengths.empty() || options.warmup < 0 || options.repeats < 1) throw UsageError("a benchmark needs a length and a repeat");
  use_threads(options.threads);
  std::sort(work.lengths.begin(), work.lengths.end());
  const int64_t longest = preset.sequence_length > 0 ? preset.sequence_length : std::max<int64_t>(work.lengths.back(), 256);
  const nlohmann::json architecture = resolve_architecture(preset.architecture, longest);
  InferenceModel model(architecture, preset.vocabulary, longest, parse_device(options.device), preset.precision, 1);
  DecodingBenchmark result{preset, model.model().parameter_count(), thread_count(), 0, {}};
  result.title = architecture_title(architecture);
  for (int64_t length : work.lengths) {
    const DecodingPoint& point = result.points.emplace_back(measure(model, preset.vocabulary, length, work, options));
    result.peak_bytes = std::max(result.peak_bytes, point.peak_bytes);
    for (const DecodingBatch& batch : point.batches) result.peak_bytes = std::max(result.peak_bytes, batch.peak_bytes);
  }
  return result;
}

}  // namespace saccade
