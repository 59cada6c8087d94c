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
#include "models/training/decoder.h"
#include "models/training/training_step.h"

namespace saccade {
namespace {

constexpr int kTokens = 32;  ///< timed one by one; before them as many as a recorded step takes

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

DecodingPoint measure(InferenceModel& model, int64_t vocabulary, int64_t length, const BenchmarkOptions& options) {
  const std::vector<int32_t> tokens = random_tokens(length, vocabulary);
  const int warm = 3;
  std::optional<Decoder> decoder;
  std::vector<double> prompts, singles;
  Cost cost;
  for (int i = 0; i < options.warmup + options.repeats; ++i) {
    decoder.reset();
    decoder.emplace(model, length + warm + kTokens);
    wait(model.arena().device());
    model.tape().reset_cost();
    const double start = now();
    decoder->feed(tokens);
    decoder->logits();
    if (i >= options.warmup) prompts.push_back(now() - start);
    cost = model.tape().cost();
  }
  for (int i = 0; i < warm + kTokens; ++i) {
    const double start = now();
    decoder->feed({&tokens[static_cast<size_t>(i % length)], 1});
    decoder->logits();
    if (i >= warm) singles.push_back(now() - start);
  }
  DecodingPoint point{length, timing("prompt", prompts), timing("token", singles), {}};
  if (options.profile) point.profile = profile_of_prompt(model, tokens);
  point.prompt.cost = cost;
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

DecodingBenchmark benchmark_decoding(const DecodingPreset& preset, std::vector<int64_t> lengths, const BenchmarkOptions& options,
                                     const std::string& precision) {
  if (lengths.empty() || options.warmup < 0 || options.repeats < 1) throw UsageError("a benchmark needs a length and a repeat");
  use_threads(options.threads);
  std::sort(lengths.begin(), lengths.end());
  const int64_t longest = std::max<int64_t>(lengths.back(), 256);
  InferenceModel model(resolve_architecture(preset.architecture, longest), preset.vocabulary, longest, parse_device(options.device),
                       precision, 1);
  DecodingBenchmark result{preset, model.model().parameter_count(), thread_count(), 0, {}};
  for (int64_t length : lengths) result.points.push_back(measure(model, preset.vocabulary, length, options));
  result.peak_bytes = model.arena().peak_used();
  return result;
}

}  // namespace saccade
