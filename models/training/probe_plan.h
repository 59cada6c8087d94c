#pragma once
#include "models/training/training_step.h"

namespace saccade {

/// What looking at a run takes in bytes: its statistics on one sequence, and the maps of every captured domain.
struct ProbePlan {
  int64_t device_bytes = 0;   ///< extent of the device's arena at the peak, weights and the optimizer's state included
  int64_t passing_bytes = 0;  ///< CPU memory that comes and goes with a layer
  int64_t held_bytes = 0;     ///< CPU memory of the maps until they are written
};

/// Passes with a probe watching, on the plan device of a step that has planned all else.
ProbePlan plan_probes(TrainingStep& step, const RunConfig& config);

}  // namespace saccade
