#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/tasks/task_run.h"

namespace saccade {

/// A score over several checkpoints of one run.
struct CheckpointMean {
  std::string task, metric;  ///< both empty: the unweighted mean of all tasks at each checkpoint
  int64_t checkpoints = 0;
  double mean = 0;  ///< shares from 0 to 1
  // From two checkpoints on:
  std::optional<double> deviation;                            ///< sample deviation (n − 1)
  std::optional<double> standard_error;                       ///< deviation / sqrt(n)
  std::optional<std::pair<double, double>> interval_95 = {};  ///< mean ± t(0.975, n − 1) · standard error
};
/// Of each task in the order in which they come, then of all of them together. Checkpoints of one run are no independent runs: the interval
/// says how steady the score is, as in arXiv:2506.11305, appendix L.
std::vector<CheckpointMean> checkpoint_means(const std::vector<TaskResult>& results);

/// At each step, ascending, the unweighted mean of the tasks' own scores.
std::vector<std::pair<int64_t, double>> task_averages(const std::vector<TaskResult>& results);

}  // namespace saccade
