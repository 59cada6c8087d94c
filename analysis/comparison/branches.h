#pragma once
#include <map>

#include "analysis/comparison/comparison.h"

namespace saccade {

/// The folder of the run whose cooldown branch this is ("RUN/branches/step-N"); empty of a run that is none.
std::filesystem::path trunk_of(const std::filesystem::path& directory);
/// "cooldown from step 200", by the folder of a branch.
std::string branch_words(const std::filesystem::path& directory);

/// Runs, each with its cooldown branches: a branch is a way to an end of its run, not an experiment of its own.
class TrunksAndBranches {
 public:
  /// A branch whose run is not among them stands for itself.
  explicit TrunksAndBranches(const std::vector<const Run*>& runs);

  const std::vector<const Run*>& runs() const { return runs_; }  ///< without the branches of others, in the order given
  /// Those of `run`, by the step that they end at.
  const std::vector<const Run*>& branches_of(const Run& run) const;
  /// Whether `run` has a branch that has finished, so that its losses are read at ends of cooldowns.
  bool has_ends(const Run& run) const { return !ends_of(run).empty(); }
  /// What a report reads equal losses from: the ends of the finished branches and of the run itself, where there are such branches (at a
  /// learning rate that has fallen, as every end); else the evaluations along the run. `domain`, `loss`: as trajectory().
  Trajectory trajectory_of(const Run& run, const std::string& domain = "", const PretrainingLoss& loss = {}) const;

 private:
  std::vector<const Run*> ends_of(const Run& run) const;  ///< finished and whole branches

  std::vector<const Run*> runs_;
  std::map<const Run*, std::vector<const Run*>> branches_;
};

}  // namespace saccade
