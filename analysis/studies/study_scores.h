#pragma once
#include <functional>
#include <set>

#include "analysis/studies/study_folder.h"
#include "analysis/studies/study_workers.h"

namespace saccade {

/// What a seed of a cell gets on a task.
struct SeedScore {
  int64_t seed = 0;
  std::string run;             ///< its folder's name
  std::vector<int64_t> steps;  ///< of the checkpoints
  double value = 0;            ///< share from 0 to 1 by the task's own metric, mean over the checkpoints
  double error = 0;            ///< standard error over the items, mean over the checkpoints; NaN of one item
  int64_t cut = 0;             ///< items whose beginning was cut off, at most at one checkpoint
  std::vector<double> right;   ///< of each item, mean over the checkpoints; empty of several tasks together
  std::string items;           ///< a hash: the items of two runs pair where it is the same
};

struct TaskScores {
  std::string task, metric;
  double chance = 0;
  int64_t items = 0;
  bool partial = false;                       ///< the task has more items
  std::vector<std::vector<SeedScore>> cells;  ///< of every cell of the study its seeds that have a score, ascending
};

struct StudyScores {
  std::vector<TaskScores> tasks;          ///< that any run has a score of, in the order of the study file
  std::vector<std::string> remarks;       ///< what has none, and why
  std::set<std::filesystem::path> files;  ///< of the scores, below the study
  int64_t made = 0;                       ///< scored now
  bool complete = true;                   ///< nothing was put off for want of time
};

/// The scores on Study::tasks of the runs that have ended at the best value of their cells: those that stand in the runs are read, the
/// others are made and kept there (evaluate_task); what was stopped goes on. A score counts wherever and whenever it was made, as long as
/// task, items, options and checkpoint are the same; so checkpoints and data may go once all is scored. One run after another, each with
/// the whole device, or side by side by `workers`. `say` hears what is scored; after `seconds` no further score is begun, but the first
/// one, and none at all with 0. Throws DataError where the file of a task, or a result, is damaged.
StudyScores study_scores(const StudyView& view, const std::function<void(const std::string&)>& say, double seconds,
                         const StudyWorkers& workers = {});

/// Makes the score of a request that study_scores() gives to its workers, unless it is there. Throws Error.
void make_score(const std::filesystem::path& study, const nlohmann::json& request, const std::function<void(const std::string&)>& say);

}  // namespace saccade
