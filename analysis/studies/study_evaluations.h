#pragma once
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "analysis/studies/study_folder.h"
#include "analysis/studies/study_workers.h"

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
                   double seconds = std::numeric_limits<double>::infinity(), StudyWorkers workers = {});
  /// Where several are made side by side: makes those of `ends` that are not there. What goes wrong with one is thrown by of(). Throws
  /// TimeIsUp.
  void make(const std::vector<EndOfRun>& ends, int64_t tokens);
  /// What evaluate_run() says of `tokens` of every domain. A file that is damaged is as good as none. Throws Error where there is no such
  /// checkpoint, TimeIsUp.
  nlohmann::json of(const EndOfRun& end, int64_t tokens);
  int64_t made() const { return made_; }
  /// Those that were asked for, below the study.
  const std::set<std::filesystem::path>& files() const { return files_; }
  /// Those that were damaged, and were made anew.
  const std::set<std::filesystem::path>& renewed() const { return renewed_; }

 private:
  nlohmann::json request_of(const EndOfRun& end, int64_t tokens) const;
  /// What the run evaluated itself at its end, where that is asked for; else null.
  nlohmann::json by_run(const EndOfRun& end, int64_t tokens) const;
  /// What stands in a file of the study, of this step; else null. That it is damaged is noted.
  nlohmann::json kept(const std::string& file, int64_t step);
  /// ", since what is kept of it is damaged" of such a file.
  std::string why_anew(const std::string& file) const;
  /// Throws DataError: why there is no evaluation in this file.
  [[noreturn]] void refuse(const std::string& file, const std::string& why) const;

  const StudyView& view_;
  std::function<void(const std::string&)> say_;
  double seconds_, begun_;
  StudyWorkers workers_;
  int64_t made_ = 0;
  std::set<std::filesystem::path> files_, renewed_;
  std::map<std::string, std::string> failed_;   ///< why, by the file of what was not made
  std::map<std::string, std::string> damaged_;  ///< why, by the file
};

/// Makes the evaluation of a request of StudyEvaluations, unless it is there, and keeps it. Throws Error.
void make_evaluation(const std::filesystem::path& study, const nlohmann::json& request);

}  // namespace saccade
