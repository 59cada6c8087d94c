#pragma once
#include <string>
#include <vector>

#include "analysis/tasks/task_run.h"

namespace saccade::cli {

struct TaskCommand {
  std::string run;
  std::vector<std::string> tasks;        ///< names or files
  std::vector<std::string> checkpoints;  ///< steps, or shares of the run ("90%"); empty: options.checkpoint
  std::string prefix = "none";
  TaskRunOptions options;
};
/// Scores every task at every checkpoint and prints the table. Throws UsageError, DataError, DeviceError, Interrupted.
int evaluate_tasks(TaskCommand command);

}  // namespace saccade::cli
