#include "analysis/figures/score_comparison.h"

#include <cmath>

#include "analysis/figures/score_records.h"

namespace saccade {

using nlohmann::json;

ScoreComparison compare_scores(const DrawnSet& drawn, const ScoreChoice& choice) {
  ScoreComparison comparison;
  for (const std::string& name : tasks_of(drawn, choice)) {
    ScoreComparison::OfTask task{name, 0, {}};
    const std::vector<ScoredGroup> groups = scored_groups(drawn, name, choice.checkpoint_mean);
    const std::vector<ScoreTest> against = score_tests(groups, 0);
    for (size_t i = 0; i < drawn.size(); ++i) {
      const Together scores = together(drawn[i], name, choice.checkpoint_mean);
      ScoreComparison::Row row{drawn[i].label, {}, 0};
      row.is_partial = scores.is_partial, row.test = against[i];
      if (!scores.values.empty()) row.score = scores.value(), row.error = scores.standard_error(), task.chance = scores.chance;
      task.rows.push_back(std::move(row));
    }
    task.best = rank_scores(groups).best();
    comparison.tasks.push_back(std::move(task));
  }
  return comparison;
}

json to_json(const ScoreComparison& comparison) {
  const auto number = [](const std::optional<double>& value) { return value && std::isfinite(*value) ? json(*value) : json(); };
  json tasks = json::array();
  for (const ScoreComparison::OfTask& task : comparison.tasks) {
    json rows = json::array();
    for (size_t i = 0; i < task.rows.size(); ++i) {
      const ScoreComparison::Row& row = task.rows[i];
      const bool tested = i > 0 && row.score && task.rows[0].score;
      rows.push_back({{"title", row.title},
                      {"score", number(row.score)},
                      {"standard_error", row.score ? number(row.error) : json()},
                      {"partial", row.is_partial},
                      {"best", task.best == i},
                      {"against_first", tested ? number(row.test.test.difference.mean) : json()},
                      {"interval_95", number(row.test.test.difference.half_95)},
                      {"p", number(row.test.test.p)},
                      {"p_holm", number(row.test.test.p_holm)},
                      {"test", row.test.name.empty() ? json() : json(row.test.name)},
                      {"tested_over", row.test.over.empty() ? json() : json(row.test.over)}});
    }
    tasks.push_back({{"task", task.task}, {"chance", task.chance}, {"rows", rows}});
  }
  return tasks;
}

}  // namespace saccade
