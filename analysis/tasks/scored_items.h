#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analysis/tasks/task_run.h"
#include "models/tasks/symbol_task.h"

namespace saccade {

/// An item of a task, and what a run answered.
struct AnsweredItem {
  int64_t number = 0;           ///< from 0, in the order of the task
  std::string group;            ///< "depth 20-30 %"; empty: the task has none
  double right = 0;             ///< 0 or 1; of a task on symbols the share of what it asks for
  std::string answer, target;   ///< of generation: what was written, and what was to be
  size_t chosen = 0, gold = 0;  ///< of choices, from 0, by the task's own metric
};

/// A part of a task: the groups of a kind ("depth") whose number is this one: 20 of "depth 20-30 %".
struct ItemGroup {
  std::string kind;
  double number = 0;
};

/// Which items of a task a run's checkpoint got wrong.
struct FailedItems {
  Task::Kind kind = Task::Kind::choices;
  int64_t asked = 0;  ///< items that there were, failed or not
  std::vector<AnsweredItem> items;
};
/// Those of a result whose `right` is below 1, in their order; of a group where one is named. Throws as read_task_result().
FailedItems failed_items(const std::filesystem::path& directory, const std::string& task, int64_t step,
                         const std::optional<ItemGroup>& group = {});

/// How right each item of a result is by the task's own metric: 0 or 1; of a task on symbols the share of what it asks for.
std::vector<double> right_of(const TaskResult& result);

/// An item as it was scored: texts, or of a task on symbols an example.
struct ScoredItem {
  TaskItem text;
  std::optional<SymbolExample> symbols;
};
/// The item once more: drawn by its seed, or read from the file that the result names. `config` and `tokenizer`: of the run, or of one that
/// was trained on the same text with the same tokenizer. Throws DataError where the task, the file or the text is not the one any more
/// that was scored, where the result does not say which it was, or where another tokenizer reads the task's symbols, and UsageError for a
/// number that there is none of.
ScoredItem scored_item(const std::filesystem::path& directory, const std::string& task, int64_t step, int64_t number,
                       const RunConfig& config, const Tokenizer& tokenizer);

}  // namespace saccade
