#pragma once
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "analysis/runs/record_json.h"
#include "analysis/runs/run.h"
#include "analysis/runs/thinning.h"

namespace saccade {

/// What the records of a journal add up to: series and statistics, in the order of steps. A `resume` record takes back what
/// stood behind its step.
class RunHistory {
 public:
  /// `most_points`: see RunDetail. With them only the last statistics are kept whole.
  explicit RunHistory(size_t most_points = 0) : most_points_(most_points) {}

  /// Throws nlohmann::json exceptions on a record that lacks something; unknown types are passed over.
  void apply(const Record& record);
  void add(const StepRecord& step);

  /// Gives back room to grow: of a run that has ended.
  void shrink();

  const std::vector<Series>& series() const { return series_; }
  const Series* find(const std::string& name) const;
  const std::vector<StatisticsRecord>& statistics() const { return statistics_; }
  const std::optional<EvaluationRecord>& last_evaluation() const { return last_evaluation_; }
  const std::vector<std::string>& ood_domains() const { return ood_domains_; }      ///< in the order of evaluation
  const std::vector<TaskScoreRecord>& task_scores() const { return task_scores_; }  ///< for each task, step and options the newest
  const std::vector<TaskScoreRecord>& preferred_task_scores() const { return preferred_task_scores_; }  ///< Run::task_scores()
  const std::vector<LossGap>& loss_gaps() const { return loss_gaps_; }                                  ///< Run::loss_gaps()
  int64_t step() const { return step_; }
  bool rewound() const { return rewound_; }  ///< some records were taken back

 private:
  /// `error`: the value's standard error, NaN where not known.
  void add(const std::string& name, const char* unit, const Position& at, double value, double error = std::nan(""));
  void add(const EvaluationRecord& evaluation);
  void add(StatisticsRecord statistics);
  void add(const MemoryRecord& memory);
  void add(TaskScoreRecord scores);
  void rewind(int64_t step);
  void note_loss(const StepRecord& step);
  template <class F>
  void of_one_axes(F&& change);

  /// The four series of every step, thinned together. Where nothing is thinned they share their axes.
  struct Steps {
    std::array<size_t, 4> place;  ///< in series_
    std::array<Thinning, 4> thinning;
  };

  size_t most_points_;
  std::vector<Series> series_;
  std::optional<Steps> steps_;
  bool rewound_ = false;
  std::map<std::string, size_t> index_;
  std::vector<StatisticsRecord> statistics_;
  std::optional<EvaluationRecord> last_evaluation_;  ///< nothing also where the last one was taken back
  std::vector<std::string> ood_domains_;
  std::vector<TaskScoreRecord> task_scores_, preferred_task_scores_;
  std::vector<LossGap> loss_gaps_;
  std::optional<double> finite_loss_;  ///< the last one
  bool in_loss_gap_ = false;
  int64_t step_ = 0;
};

/// Mean without NaN; NaN when nothing remains.
double mean_of(const std::vector<double>& values);

}  // namespace saccade
