#pragma once
#include <atomic>
#include <functional>

#include "analysis/training/training_run.h"
#include "models/training/decoder.h"

namespace saccade {

struct GenerationOptions {
  std::string prompt;  ///< empty: begins after an end of text
  int64_t tokens = 100;
  Sampling sampling = {};
};

/// Text that goes on from a prompt.
struct Generation {
  std::vector<int32_t> prompt, tokens;  ///< what was fed first, what was chosen
  std::string text;                     ///< decoded from `tokens`
  bool ended = false;                   ///< the model ended the text
};
/// The texts in the order of `options`, at most `side_by_side` at a time; which stand side by side changes no text, and the same options
/// give the same tokens. `stop` ends early. Throws UsageError where the model cannot decode or not that far.
std::vector<Generation> generate(LoadedModel& loaded, const std::vector<GenerationOptions>& options, int64_t side_by_side,
                                 const std::atomic<bool>& stop);

}  // namespace saccade
