#pragma once
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "analysis/figures/score_figures.h"
#include "analysis/tasks/score_tests.h"

namespace saccade {

/// What runs' records of scores say, for figures, tables and comparisons of them.

/// Of each task the newest, of all of its items where one is. `task`: see ScoreChoice; empty: all.
std::vector<const TaskScoreRecord*> records_of(const Run& run, const std::string& task);
/// By the metric that tables give; null where a record lacks it.
const TaskScoreRecord::Score* main_score(const TaskScoreRecord& record);
/// What counts of a run in one task: its newest result, or that of every checkpoint that was scored in the same way.
std::vector<const TaskScoreRecord*> counted(const Run& run, const std::string& task, bool all_checkpoints);
std::set<std::string> tasks_of(const DrawnSet& drawn, const std::string& task);
/// Those of the choice; none where no run has one of them.
std::vector<std::string> tasks_of(const DrawnSet& drawn, const ScoreChoice& choice);

/// Seeds of one setting together.
struct Together {
  std::vector<double> values;
  double error = 0, chance = 0;  ///< `error` over items, of one seed
  int64_t items = 0;
  bool is_partial = false;
  void add(double value, double item_error, int64_t item_count);
  double value() const;
  double standard_error() const;  ///< over seeds where there are several, else over items
  std::array<double, 2> interval_95() const;
};
/// What a group has along an axis, with 95 % intervals as bars.
Curve curve_of(const DrawnRuns& group, const std::map<double, Together>& points);
/// Bars of several curves at one place beside each other.
void put_bars_beside(std::vector<Curve>& curves);
AxisRecipe share_axis();  ///< "share right", from 0 to 1
/// Of a group of seeds in one task; without values where it was not scored. Checkpoints answer the same items: the error of their mean is
/// taken for that of one of them.
Together together(const DrawnRuns& group, const std::string& task, bool all_checkpoints);
/// The same for tests.
std::vector<ScoredGroup> scored_groups(const DrawnSet& drawn, const std::string& task, bool all_checkpoints);

}  // namespace saccade
