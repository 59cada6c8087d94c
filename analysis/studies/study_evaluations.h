#pragma once
#include <functional>
#include <set>

#include "analysis/studies/study_folder.h"

namespace saccade {

/// The checkpoint at the end of a run of a study, or of a cooldown branch of one.
struct EndOfRun {
  std::string run, branch;
  int64_t step = 0;
};

/// Losses of the checkpoints at the ends of a study's runs on the split that the study names: made once, and kept in STUDY/evaluations.
/// What a run evaluated itself when it ended (RUN/evaluations) is not made again.
class StudyEvaluations {
 public:
  /// Thrown instead of making another one.
  struct TimeIsUp {};

  /// `say` hears what is evaluated. After `seconds` none is begun any more; the first one always is, but where `seconds` is 0.
  StudyEvaluations(const StudyView& view, std::function<void(const std::string&)> say,
                   double seconds = std::numeric_limits<double>::infinity());
  /// What evaluate_run() says of `tokens` of every domain. Throws Error where there is no such checkpoint, TimeIsUp.
  nlohmann::json of(const EndOfRun& end, int64_t tokens);
  int64_t made() const { return made_; }
  /// Those that were asked for, below the study.
  const std::set<std::filesystem::path>& files() const { return files_; }

 private:
  const StudyView& view_;
  std::function<void(const std::string&)> say_;
  double seconds_, begun_;
  int64_t made_ = 0;
  std::set<std::filesystem::path> files_;
};

}  // namespace saccade
