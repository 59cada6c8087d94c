#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/tasks/task.h"

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
};

/// Rows that a file holds.
struct TaskRow {
  nlohmann::json fields;
  std::string where;  ///< "FILE:LINE", or "FILE: item N" of an array
};
/// JSON lines (also .gz, .zst) or a JSON array. Throws DataError with file and line.
std::vector<TaskRow> read_task_rows(const std::filesystem::path& file);

struct TaskItems {
  std::vector<TaskItem> items;
  std::filesystem::path file;  ///< the data
  std::string hash;            ///< SHA-256 of what was read: data, labels, examples
  int64_t shots = 0;
};
struct TaskItemOptions {
  int64_t limit = 0;           ///< the first so many; 0: all
  int64_t shots = -1;          ///< examples before each item; −1: the task's own number
  bool strict_spaces = false;  ///< COPA's and WSC's continuations begin with one space, where the published numbers were made with two
};
/// The items of a task whose files lie in `data` (a folder, or the file itself). Throws DataError that says where such a file comes
/// from when it is missing, and names file, line and field where a row is not of the task's form.
TaskItems read_task_items(const Task& task, const std::filesystem::path& data, const TaskItemOptions& options = {});

}  // namespace saccade
