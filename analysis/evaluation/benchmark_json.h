#pragma once
#include <string>

#include "analysis/evaluation/decoding_benchmark.h"
#include "models/json.h"

namespace saccade {

/// Benchmarks as `saccade bench --json` prints and `--out` keeps them; analysis/figures/bench_results.h reads them again. Times are in
/// milliseconds under "ms", "fastest_ms" and "slowest_ms"; what did not fit has "refusal", a sentence, in their place.
nlohmann::json to_json(const Timing& timing);
/// {"preset", "title", "parameters", "sequence_length", "batch_tokens", "tokens_per_s", "peak_bytes", "device", "gpu", "processor", …}
nlohmann::json to_json(const StepBenchmark& benchmark);
/// {"preset", "title", "parameters", "gpu", …, "points": [{"length", "prompt", "token", "state_bytes", "peak_bytes", "batches": […]}]}
nlohmann::json to_json(const DecodingBenchmark& benchmark, const std::string& device);

/// Adds to what was measured beside `name` at the same length and batch how many times as fast as that it is: "relative" of steps and
/// batches, "relative" and "relative_token" of points, and "whole_relative" of batches with their prompts (arXiv:2505.18522, table 3).
/// `result` is {"steps": […]} or {"decoding": […]}.
void add_relative(nlohmann::json& result, const std::string& name);

}  // namespace saccade
