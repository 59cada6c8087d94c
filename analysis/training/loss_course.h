#pragma once
#include <cstdint>
#include <deque>
#include <filesystem>
#include <limits>
#include <optional>

#include "analysis/runs/history.h"

namespace saccade {

/// Follows the training loss of a run, to tell checkpoints from before it left its course. A step is on course when the mean loss of
/// the last kSmoothed steps is above the least such mean so far by at most 20 % or 0.1 nats, whichever is more.
class LossCourse {
 public:
  static constexpr size_t kSmoothed = 20;
  void add(double loss);  ///< of the next step, in nats
  bool on_course() const;

 private:
  std::deque<double> last_;
  double smoothed_ = std::numeric_limits<double>::quiet_NaN(), best_ = std::numeric_limits<double>::infinity();
};

/// What the journal says of a run's losses up to a step: the course there, and the newest checkpoint file that was on course.
struct CourseSoFar {
  LossCourse course;
  std::optional<int64_t> on_course;
};
/// What the journal of a run directory holds. Throws DataError.
RunHistory recorded_history(const std::filesystem::path& directory);
/// `history` as recorded_history gives it. Throws DataError.
CourseSoFar course_so_far(const std::filesystem::path& directory, const RunHistory& history);

}  // namespace saccade
