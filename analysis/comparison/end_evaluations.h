#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analysis/comparison/comparison.h"

namespace saccade {

/// Where a study keeps an evaluation of the checkpoint at the end of a run, below its folder. `run`: below STUDY/runs, "NAME" or
/// "NAME/branches/step-100". `tokens`: of every domain; `length`: of a sequence, in tokens, 0: as the run was trained.
std::filesystem::path study_evaluation_file(const std::filesystem::path& run, const std::string& split, int64_t tokens, int64_t length);

/// What studies have evaluated at the ends of some runs on a split: as many tokens of every domain, in sequences of the same length, for
/// all of them; the most tokens that the most runs have. Throws DataError where a file is damaged.
class EndEvaluations {
 public:
  EndEvaluations(const std::vector<const Run*>& runs, std::string split);

  const std::string& split() const { return split_; }
  int64_t tokens() const { return tokens_; }
  /// Null where the run's study, if it has one, has none of its last step.
  std::shared_ptr<const SequenceLosses> of(const Run& run) const;
  /// Its mean over the training domains or the OOD domains, nats per token; NaN where there is none. `domain`: as mean_over_domains().
  double loss(const Run& run, bool ood, const std::string& domain = "") const;
  size_t count() const { return losses_.size(); }  ///< runs that have one

 private:
  std::string split_;
  int64_t tokens_ = 0;
  std::map<std::filesystem::path, std::shared_ptr<const SequenceLosses>> losses_;  ///< by the runs' directories
};

/// "no study has evaluated the ends of these runs on it; …": said of a split of which EndEvaluations are empty, with the command that makes
/// some.
std::string how_to_evaluate_ends(const std::string& split);

/// compare() with the losses at the ends of these evaluations: rows without one have none there, which is a warning.
Comparison compare_at_ends(const std::vector<const Run*>& runs, const EndEvaluations& ends, std::optional<double> at_loss = {},
                           const std::string& domain = "", const PretrainingLoss& pretraining = {}, const TuningOfRun& tuning = {});

}  // namespace saccade
