#pragma once
#include <nlohmann/json.hpp>

#include "analysis/evaluation/benchmark.h"

namespace saccade {

/// A model whose prefill and incremental decoding are timed.
struct DecodingPreset {
  std::string name;
  nlohmann::json architecture;
  int64_t vocabulary = 0;
};
const std::vector<DecodingPreset>& decoding_presets();

/// One sequence at one length.
struct DecodingPoint {
  int64_t length = 0;
  Timing prompt;                 ///< from an empty state to the logits behind the last token of the prompt, on the host
  Timing token;                  ///< one token more, to its logits on the host
  std::vector<OpShare> profile;  ///< of the prompt, longest first; empty unless asked for
};
struct DecodingBenchmark {
  DecodingPreset preset;
  int64_t parameters = 0, threads = 0;
  int64_t peak_bytes = 0;
  std::vector<DecodingPoint> points;  ///< shortest first
};
/// Random weights and tokens, batch 1. `precision` as in a config.
DecodingBenchmark benchmark_decoding(const DecodingPreset& preset, std::vector<int64_t> lengths, const BenchmarkOptions& options,
                                     const std::string& precision = "auto");

}  // namespace saccade
