#include "analysis/tasks/checkpoint_means.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/comparison/statistics.h"

namespace saccade {
namespace {

CheckpointMean mean_over(const std::string& task, const std::string& metric, const std::vector<double>& scores) {
  const Repeated all = repeated(scores);
  CheckpointMean of{task, metric, all.count, all.mean, all.deviation, {}};
  if (all.deviation) of.standard_error = *all.deviation / std::sqrt(static_cast<double>(all.count));
  if (all.half_95) of.interval_95 = std::pair(all.mean - *all.half_95, all.mean + *all.half_95);
  return of;
}

}  // namespace

std::vector<std::pair<int64_t, double>> task_averages(const std::vector<TaskResult>& results) {
  std::map<int64_t, std::vector<double>> by_step;
  for (const TaskResult& result : results) by_step[result.step].push_back(result.score().value);
  std::vector<std::pair<int64_t, double>> averages;
  for (const auto& [step, scores] : by_step) averages.emplace_back(step, mean(scores));
  return averages;
}

std::vector<CheckpointMean> checkpoint_means(const std::vector<TaskResult>& results) {
  std::vector<CheckpointMean> means;
  for (const TaskResult& first : results) {
    if (std::any_of(means.begin(), means.end(), [&](const CheckpointMean& known) { return known.task == first.task; })) continue;
    std::vector<double> scores;
    for (const TaskResult& result : results)
      if (result.task == first.task) scores.push_back(result.score().value);
    means.push_back(mean_over(first.task, first.metric, scores));
  }
  std::vector<double> averages;
  for (const auto& [step, average] : task_averages(results)) averages.push_back(average);
  means.push_back(mean_over("", "", averages));
  return means;
}

}  // namespace saccade
