#pragma once

#include "analysis/evaluation/benchmark.h"
#include "models/json.h"

namespace saccade {

/// A model whose prefill and incremental decoding are timed.
struct DecodingPreset {
  std::string name;
  nlohmann::json architecture;
  int64_t vocabulary = 0;
  int64_t sequence_length = 0;  ///< that tables of positions are made for; 0: the longest prompt
  std::string precision = "auto";
};
const std::vector<DecodingPreset>& decoding_presets();
/// The model of a config. Throws UsageError, DataError.
DecodingPreset decoding_preset(const RunConfig& config);

/// Sequences side by side, each with a prompt of the same length.
struct DecodingBatch {
  int64_t sequences = 1;
  double prefill = 0;      ///< seconds for all prompts
  Timing step;             ///< one token more of every sequence, to the likeliest next tokens on the host
  int64_t tokens = 0;      ///< timed steps
  int64_t peak_bytes = 0;  ///< of the model and these sequences
  std::string refusal;     ///< why there are no times: too long for the model, or more than the memory that is free
  double tokens_per_second() const { return static_cast<double>(sequences) / step.median; }
  /// Prompts and what was decoded, over the time of both.
  double whole_tokens_per_second(int64_t length) const;
};

/// Prompts of one length.
struct DecodingPoint {
  int64_t length = 0;
  Timing prompt;                 ///< of one: from an empty state to the logits behind its last token, on the host (time to first token)
  Timing token;                  ///< of one: one token more, to its logits on the host
  int64_t state_bytes = 0;       ///< kept of a sequence that long
  int64_t peak_bytes = 0;        ///< of the model and one sequence
  std::vector<OpShare> profile;  ///< of the prompt, longest first; empty unless asked for
  std::vector<DecodingBatch> batches;
  std::string refusal;  ///< as of a batch
};
struct DecodingBenchmark {
  DecodingPreset preset;
  int64_t parameters = 0, threads = 0;
  int64_t peak_bytes = 0;
  std::vector<DecodingPoint> points;  ///< shortest first
  std::string title = {};             ///< of the architecture
};
struct DecodingBenchmarkOptions {
  std::vector<int64_t> lengths;  ///< tokens of a prompt
  std::vector<int64_t> batches;  ///< sequences side by side; may be empty
  int64_t tokens = 32;           ///< that follow a prompt and are timed one by one, after as many as capturing a step takes
};
/// Random weights and tokens. What does not fit is a point that says so. Throws UsageError where the architecture does not decode.
DecodingBenchmark benchmark_decoding(const DecodingPreset& preset, DecodingBenchmarkOptions work, const BenchmarkOptions& options);

}  // namespace saccade
