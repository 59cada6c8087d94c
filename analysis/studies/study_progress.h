#pragma once
#include "analysis/studies/study_folder.h"

namespace saccade {

/// How far a study is as a whole.
struct StudyProgress {
  int64_t runs = 0;  ///< with the seeds that follow once the best values are known
  int64_t finished = 0, diverged = 0, running = 0, gave_up = 0;
  double share = 0;                                                ///< of all training steps, 0 … 1
  double seconds_left = std::numeric_limits<double>::quiet_NaN();  ///< NaN: nothing has been timed yet, or nothing goes on
  int64_t tuned = 0, edge = 0;                                     ///< cells whose search has ended inside, or at an end of its values
  bool searches = false;                                           ///< there is a tuning axis
};

/// Time left by the seconds a step took so far, in the same cell where it is known, `jobs` runs at a time; at most what the budget leaves.
StudyProgress progress_of(const StudyView& view, int64_t jobs = 1);

}  // namespace saccade
