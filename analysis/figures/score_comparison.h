#pragma once
#include "analysis/figures/score_figures.h"
#include "analysis/tasks/score_tests.h"

namespace saccade {

/// The scores of groups of seeds on the tasks that any of them has, each against the first group's.
struct ScoreComparison {
  struct Row {
    std::string title;
    std::optional<double> score;  ///< share from 0 to 1, mean over seeds; nothing: not scored
    double error = 0;             ///< standard error over seeds where there are several, else over items
    bool is_partial = false;      ///< on some of the task's items
    ScoreTest test{};             ///< against the first group, corrected for the task's other groups (Holm)
  };
  struct OfTask {
    std::string task;
    double chance = 0;
    std::vector<Row> rows;
    std::optional<size_t> best{};  ///< rank_scores
  };
  std::vector<OfTask> tasks;
};
ScoreComparison compare_scores(const DrawnSet& drawn, const ScoreChoice& choice = {});
nlohmann::json to_json(const ScoreComparison& comparison);

}  // namespace saccade
