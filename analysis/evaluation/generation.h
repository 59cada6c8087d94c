#pragma once
#include <atomic>
#include <functional>

#include "analysis/training/training_run.h"

namespace saccade {

struct GenerationOptions {
  std::string prompt;  ///< empty: begins after an end of text
  int64_t tokens = 100;
  double temperature = 1;  ///< 0: always the likeliest token
  uint64_t seed = 1;
};

/// Text that goes on from a prompt.
struct Generation {
  std::vector<int32_t> prompt, tokens;  ///< what was fed first, what was chosen
  std::string text;                     ///< decoded from `tokens`
  bool ended = false;                   ///< the model ended the text
};
/// The same options give the same tokens. `chosen` hears of every token; `stop` ends early. Throws UsageError where the model cannot
/// decode or not that far.
Generation generate(LoadedModel& loaded, const GenerationOptions& options, const std::function<void(int32_t)>& chosen,
                    const std::atomic<bool>& stop);

}  // namespace saccade
