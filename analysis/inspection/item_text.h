#pragma once
#include <filesystem>
#include <string>

#include "analysis/inspection/text_sources.h"
#include "models/config/config.h"

namespace saccade {

/// An item of a task as a run was scored on it (RUN/tasks/TASK-step-N.json).
struct ItemPlace {
  std::filesystem::path run;
  std::string task;  ///< "s-niah-2-4096"
  int64_t step = 0, item = 0;
};

/// The item with its right answer behind the prompt: of choices the right choice, of generation the target. Where the answer stands in the
/// prompt (a needle), that is a known answer, as is what a task on symbols asks for. The last `most` tokens are kept, which hold the
/// question; the query is the one that is to say the answer's first token. `config` and `tokenizer`: of the run that reads. Throws as
/// scored_item().
InspectedText item_text(const ItemPlace& place, const RunConfig& config, const Tokenizer& tokenizer, int64_t most);

}  // namespace saccade
