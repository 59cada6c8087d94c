#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/tasks/task.h"
#include "kernels/engine/error.h"
#include "models/corpus/tokenizer.h"
#include "models/tasks/prompt_task.h"

namespace saccade {

/// What the model reads and what is scored behind it.
struct TaskRequest {
  std::string context, continuation;
  std::string choice;  ///< the continuation without its delimiter: acc_norm divides by its characters, acc_bytes by its bytes
  bool operator==(const TaskRequest&) const = default;
};
struct TaskItem {
  std::vector<TaskRequest> requests;  ///< one for each choice
  size_t gold = 0;
  std::string group;  ///< empty: the task has none

  // Answered by generation, behind the context of the one request.
  std::string target = {};
  int64_t max_tokens = 0;
  size_t needle = 0;  ///< byte of the context at which what is asked for stands, of generated prompts
};

/// Rows that a file holds.
struct TaskRow {
  nlohmann::json fields;
  std::string where;  ///< "FILE:LINE", where the row begins
};
constexpr size_t kMostTaskRows = 1'000'000;               ///< of a file
constexpr int64_t kLargestTaskData = int64_t{256} << 20;  ///< bytes of a file, unpacked
/// JSON lines (also .gz, .zst), a JSON array, or by its name CSV or TSV (csv_rows.h). Throws DataError with file and line, also for a file
/// of more than kMostTaskRows or kLargestTaskData.
std::vector<TaskRow> read_task_rows(const std::filesystem::path& file, const std::vector<std::string>& columns = {});

struct TaskItems {
  std::vector<TaskItem> items;
  std::filesystem::path file;  ///< the data
  std::string hash;            ///< SHA-256 of what was read: data, labels, examples
  int64_t shots = 0;
  int64_t there = 0;  ///< items that there are; more than `items` where a limit left some out
  double chance = 0;  ///< chance_level; of a task with chance_of_majority over all items that there are
};
struct TaskItemOptions {
  int64_t limit = 0;   ///< the first so many; 0: all
  int64_t shots = -1;  ///< examples before each item; −1: the task's own number
  bool trim = true;    ///< white space around context and target goes, where the task is answered by generation
  uint64_t seed = 42;  ///< of generated prompts
  std::filesystem::path adjectives = {},
                        nouns = {};  ///< words that keys of generated prompts are made of, one a line; empty: those that ship
  bool strict_spaces = false;  ///< COPA's and WSC's continuations begin with one space, where the published numbers were made with two
};
/// A file that a task needs is not there; says where it comes from.
class MissingTaskData : public DataError {
 public:
  using DataError::DataError;
};
/// The items of a task whose files lie in `data` (a folder, or the file itself). Throws MissingTaskData, and DataError that names file,
/// line and field where a row is not of the task's form.
TaskItems read_task_items(const Task& task, const std::filesystem::path& data, const TaskItemOptions& options = {});

/// The items of a task whose prompts are generated; `haystack` is what they stand in, where the generator needs text. Throws UsageError.
TaskItems generate_task_items(const Task& task, const Tokenizer& tokenizer, const std::string& haystack, const TaskItemOptions& options);
/// What the prompts of a generated task are made from. Throws UsageError where words are given that it has no keys for, DataError where a
/// file of words cannot be read or has none.
PromptInput prompt_input(const Task& task, const Tokenizer& tokenizer, const std::string& haystack, const TaskItemOptions& options);
/// Whether the task's prompts are generated, and need a text.
bool needs_haystack(const Task& task);
/// A file's text: of JSON (lines) the field "text". Throws DataError.
std::string read_haystack(const std::filesystem::path& file);

}  // namespace saccade
