#pragma once
#include "analysis/studies/study_folder.h"

namespace saccade {

/// What a cell of a study will take.
struct CellPlan {
  std::string name, device;
  int64_t runs = 0;                                           ///< still to do, with those that follow once the best value is known
  int64_t parameters = 0, tokens = 0;                         ///< tokens: of one run with its branches
  double flops = 0;                                           ///< likewise
  double seconds = std::numeric_limits<double>::quiet_NaN();  ///< likewise, evaluations included; NaN: not measured
  double disk_bytes = 0;                                      ///< of one run: its checkpoints
  std::string note;                                           ///< why it was not measured, or cannot run here
  std::string short_of;                                       ///< StudyCell::short_of
};
struct StudyPlan {
  std::string name, question;
  std::vector<CellPlan> cells;
  int64_t runs = 0, to_do = 0;                                ///< all of the study, and those that have not ended
  double tokens = 0, flops = 0, seconds = 0, disk_bytes = 0;  ///< of those to do; seconds NaN where a cell is not measured
  bool may_extend = false;                                    ///< tuning may add runs
  int64_t gpus = 0;                                           ///< of this machine, which its runs could be spread over
  std::vector<std::string> missing;                           ///< missing_text()
};
struct PlanOptions {
  bool measure = true;          ///< time steps and evaluation of every distinct model
  double measure_seconds = 60;  ///< no further model is timed once it has taken so long
  std::function<void(const std::string&)> say = {};
};
/// Throws UsageError where a study can be read, but would not do what it says: it evaluates fewer tokens than a sequence of one of its runs
/// has, or extends a search of one value.
void require_startable(const StudyView& view);

/// Why runs of a study would not find their text on this machine, where their corpus, or a domain of it, is not there: a line each. A
/// built-in corpus that the first run makes counts as there.
std::vector<std::string> missing_text(const StudyView& view);

/// Throws UsageError, DataError (a tokenizer that is not there).
StudyPlan plan_study(const StudyView& view, const PlanOptions& options);

/// `budget`: hours, to say how many runs fit.
std::string to_text(const StudyPlan& plan, std::optional<double> budget);
nlohmann::json to_json(const StudyPlan& plan, std::optional<double> budget);

}  // namespace saccade
