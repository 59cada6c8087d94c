#pragma once
#include "analysis/figures/page.h"

namespace saccade {

/// Scores of tasks (`saccade evaluate --task`) as figures and tables: of each run and task those at the newest checkpoint that was scored,
/// of the metric that the task's table gives. What a record is placed by is called like this:
///   length, pairs …            the number behind this word in the task's name (mqar-length-64-pairs-8, s-niah-2-4096)
///   depth, distance, position  of the groups that its scores are also given by; of 8-15 the 8
///   architecture.width …       a number of the run (run_number())
/// `task`: what the names of its tasks begin with ("s-niah-2", "mqar"); empty: all. Of results of one task those of all of its items come
/// before those of some (TaskScoreRecord::partial), whatever their step.
///
/// 95 % intervals: over seeds, where there are several, Student's t, cut off at 0 and 1; else over items Wilson's score interval (E. B.
/// Wilson 1927, Journal of the American Statistical Association 22, 209), of as many items as the standard error stands for.

/// Score over `against`, a curve for each group of seeds; the band is the 95 % interval. Chance is dashed.
Figure score_curve(const DrawnSet& drawn, const std::string& task, const std::string& against);

/// Score by `against` (columns) and `rows`, the mean over all runs. What is not evenly spaced stands side by side, and the axis says what.
Figure score_map(const DrawnSet& drawn, const std::string& task, const std::string& against, const std::string& rows);

/// Which scores a table or dots show.
struct ScoreChoice {
  std::string task;                ///< what the tasks' names begin with; empty: all
  std::vector<std::string> tasks;  ///< these alone, in this order; empty: as `task` says, by name
  bool checkpoint_mean = false;    ///< of each run the mean over all checkpoints that were scored with the newest one's options
  ScoreChoice(std::string names_begin = {}, std::vector<std::string> names = {}, bool mean = false)
      : task(std::move(names_begin)), tasks(std::move(names)), checkpoint_mean(mean) {}
};

/// A dot with its interval for every task and group of seeds; tasks are numbered across, and named by the axis.
Figure score_dots(const DrawnSet& drawn, const ScoreChoice& choice);

/// A score behind a dot or a cell, as it stands in a run.
struct ScoreSource {
  const Run* run = nullptr;
  std::string task;        ///< "s-niah-2-4096"
  int64_t step = 0;        ///< of the checkpoint that was scored
  std::string group = {};  ///< "depth", where it is of a group of the task's items alone
  double number = 0;       ///< 20 of "depth 20-30 %"
};
/// What the dot of score_dots() nearest to a place across is of: every seed's score.
std::vector<ScoreSource> sources_of_dot(const DrawnSet& drawn, const std::string& task, double x);
/// What a cell of score_map() is the mean of.
std::vector<ScoreSource> sources_of_cell(const DrawnSet& drawn, const std::string& task, const std::string& against,
                                         const std::string& rows, int64_t row, int64_t column);

/// A line for each task, per cent ± standard error (over seeds where there are several, else over items), and the unweighted mean where a
/// group has all tasks. "*" marks the best where paired tests tell it from every other (rank_scores); "(part)" what was scored on some
/// of the task's items. With `checkpoint_mean` the mean of the tasks is that of the checkpoints at which all tasks were scored, with its
/// sample deviation, standard error and 95 % interval (arXiv:2506.11305, appendix L): over the checkpoints of a single run, or over seeds.
PageTable score_table(const DrawnSet& drawn, const ScoreChoice& choice, const std::string& title);

}  // namespace saccade
