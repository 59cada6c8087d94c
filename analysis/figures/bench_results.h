#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace saccade {

/// What files of `saccade bench --out` say, model by model; the same model on two devices is two.
struct BenchedModel {
  /// One measurement: a median with the fastest and the slowest repeat, or why there is none.
  struct Point {
    std::string quantity;  ///< bench_quantities()
    int64_t length = 0;    ///< tokens of a sequence, or of its prompt
    int64_t batch = 1;     ///< sequences side by side in decoding
    double value = 0, low = 0, high = 0;
    std::string refusal;  ///< not empty: no values, and why
  };
  std::string name, title, device;  ///< of the config; of its architecture; the GPU, or the processor
  std::vector<Point> points;
};

/// training-speed (tokens/s of whole steps), first-token (s), token-time (s of one more token), state-bytes, decoding-speed (tokens/s of
/// all sequences side by side) and whole-speed (the same with their prompts).
const std::vector<std::string>& bench_quantities();

/// Of the text of one file; `origin` names it in errors. Throws DataError.
std::vector<BenchedModel> parse_bench(const std::string& text, const std::string& origin);
/// Reads files, and the .json files of folders. What was measured twice counts as it was measured last. Throws DataError for what is not
/// there or is no result of `saccade bench`.
std::vector<BenchedModel> load_bench(const std::vector<std::filesystem::path>& paths);

}  // namespace saccade
