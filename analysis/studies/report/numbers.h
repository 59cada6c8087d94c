#pragma once
#include <array>

#include "analysis/comparison/comparison.h"
#include "analysis/comparison/equal_cost.h"
#include "analysis/comparison/sequence_losses.h"
#include "analysis/comparison/statistics.h"
#include "analysis/studies/report/bits_per_byte.h"
#include "analysis/studies/study_evaluations.h"

namespace saccade {

/// The end of a run or of a cooldown branch of it.
struct ReportEnd {
  RunEnd at;
  double pretraining = std::numeric_limits<double>::quiet_NaN();  ///< the study's pre-training loss there, nats per token
  MeanBits bits = {};
};

/// What one seed of a cell contributes to a report.
struct SeedNumbers {
  int64_t seed = 0;
  std::string run;                     ///< its folder's name
  RunSummary summary;                  ///< of the run
  RunEnd end;                          ///< losses at its end: recorded, or of an evaluation of its checkpoint
  std::string split;                   ///< that they are of
  Trajectory trajectory;               ///< for equal losses; its pre-training loss is the study's
  bool branch_ends = false;            ///< the trajectory's points, and the courses', are ends of cooldowns
  std::array<Course, 3> courses = {};  ///< by Spent
  const Course& course(Spent spent) const { return courses[static_cast<size_t>(spent)]; }
  std::shared_ptr<const SequenceLosses> losses = {};                   ///< of its end, evaluated anew; null: it was not
  std::map<int64_t, std::shared_ptr<const SequenceLosses>> branches;   ///< of the ends of its branches, by step, likewise
  double validation_error = std::numeric_limits<double>::quiet_NaN();  ///< standard error over sequences
  double ood_error = std::numeric_limits<double>::quiet_NaN();
  MeanBits bits = {};                           ///< at its end
  CourseInBits in_bits = {};                    ///< trajectory and courses
  std::vector<ReportEnd> ends = {};             ///< its own and those of its branches, as recorded
  std::map<std::string, double> domain_tokens;  ///< of the training domains; empty where not recorded
  std::string source() const;                   ///< "runs/NAME, step 200, validation split"
};

/// A cell's seeds that have ended: at the best value, where one is searched.
struct CellNumbers {
  size_t cell = 0;
  std::string name;
  std::vector<SeedNumbers> seeds;
  Tuning tuning;
  int64_t missing = 0;  ///< seeds that have not ended, or diverged
};

struct ReportNumbers {
  std::vector<CellNumbers> cells;
  int64_t tokens = 0;                      ///< of every domain that were evaluated at the ends; 0: as training recorded
  bool whole_split = false;                ///< there were no more
  std::vector<std::string> left_out = {};  ///< why runs, which they name, could not be evaluated; no cell has them
  std::string short_of = {};               ///< why there are no more tokens though differences would need them; empty where there are
};
/// With StudyEvaluation::paired_error, there are more tokens (tokens_for_error) until every difference of a seed, or of a branch of it, to
/// the first cell's has as small an error over the sequences (paired_difference). Throws DataError where a study asks for evaluations and
/// no run can be evaluated, or the study's pre-training loss is not recorded, and what StudyEvaluations::of() throws.
ReportNumbers report_numbers(const StudyView& view, StudyEvaluations& evaluations);

struct EvaluatedStudy {
  int64_t made = 0;
  bool complete = false;                  ///< a report needs no checkpoint any more
  std::set<std::filesystem::path> files;  ///< below the study, those that were there before too
  std::vector<std::string> left_out;      ///< as in ReportNumbers
};
/// Makes the evaluations that a report needs, until `seconds` are up. Throws DataError where no run can be evaluated.
EvaluatedStudy evaluate_study(const StudyView& view, const std::function<void(const std::string&)>& say, double seconds,
                              const StudyWorkers& workers = {});

}  // namespace saccade
