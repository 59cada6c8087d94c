#pragma once
#include <atomic>
#include <functional>
#include <span>

#include "analysis/tasks/scoring.h"
#include "analysis/training/training_run.h"

namespace saccade {

/// How an item is answered by generation.
struct AnswerOptions {
  Prefix prefix = Prefix::none;
  int64_t longest = 0;            ///< tokens of prompt and answer together: the prompt loses its beginning; 0: any number
  std::vector<std::string> stop;  ///< where generation ends; what is found is cut off, with what follows
  int64_t side_by_side = 64;      ///< answers that are written at a time
};
/// What a model wrote.
struct Answer {
  std::string text;
  int64_t prompt_tokens = 0;
  bool cut = false;  ///< the prompt's beginning was cut off
};
/// Greedy decoding behind the contexts of items `which`: at most item.max_tokens tokens, until the end of text or a stop; `done` hears of
/// each answer as it ends. Which items stand side by side changes no answer. `stop` ends early. Throws UsageError where the model cannot
/// decode, or not that far.
void answer_items(LoadedModel& loaded, std::span<const TaskItem> items, std::span<const size_t> which, const AnswerOptions& options,
                  const std::function<void(size_t item, const Answer& answer)>& done, const std::atomic<bool>& stop);

/// Share of the prompt's tokens that stand before the needle.
double needle_depth(const Tokenizer& tokenizer, const TaskItem& item);

/// What a task on symbols says of a model: the share of answers that are right over all, with its standard error over the examples; the
/// share of examples that are all right ("exact"); and by how far back the answer stood ("acc distance 8-15"), and by position, in powers
/// of two.
struct SymbolScores {
  std::vector<TaskScore> scores;
  std::vector<AnswerScore> items;  ///< an example each
};
/// Examples 0 … samples − 1 of the test split. Throws UsageError where the model has too few symbols or ends before their length.
SymbolScores score_symbols(LoadedModel& loaded, const Task& task, int64_t samples, const std::function<void(double fraction)>& progress);

}  // namespace saccade
