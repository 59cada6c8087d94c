#pragma once
#include "models/training/training_step.h"

namespace saccade {

/// Tokens of the first domain, in whole sequences and one at least, that statistics are probed on.
inline constexpr int64_t kProbedTokens = 4096;
/// How many of the sequences of a frozen batch that is.
int64_t probed_sequences(int64_t sequences, int64_t length);
/// How many of them go through the model at once, where they are equally long: as many as are trained on at once. One by one they take
/// longer, on a GPU many times as long, which has then nothing to do but begin kernels.
int64_t sequences_in_a_probe(const TrainingConfig& training, int64_t sequences, int64_t length);

/// What looking at a run takes in bytes: a pass of its statistics, and the maps of every captured domain.
struct ProbePlan {
  int64_t device_bytes = 0;   ///< extent of the device's arena at the peak, weights and the optimizer's state included
  int64_t passing_bytes = 0;  ///< CPU memory that comes and goes with a layer
  int64_t held_bytes = 0;     ///< CPU memory of the maps until they are written
};

/// Passes with a probe watching, on the plan device of a step that has planned all else.
ProbePlan plan_probes(TrainingStep& step, const RunConfig& config);

}  // namespace saccade
