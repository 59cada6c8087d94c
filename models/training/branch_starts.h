#pragma once
#include "models/config/config.h"

namespace saccade {

/// Where cooldown branches of the schedule wsd may begin: behind the warm-up, and before the run's own cooldown.
struct StableSteps {
  int64_t first = 0, last = -1;
};
StableSteps stable_steps(const TrainingConfig& training);

/// The losses of the setting cooldown_at_loss, nats per token; none of another schedule.
std::vector<double> cooldown_losses(const TrainingConfig& training);

/// What a plan counts: the steps of cooldown_steps_of, and for each loss the last stable step, since where the run will pass it is not
/// known and no branch takes longer.
std::vector<int64_t> planned_branches(const TrainingConfig& training);

/// The first step behind which a run has been trained on at least so many tokens.
int64_t step_at_tokens(const TrainingConfig& training, double tokens);

}  // namespace saccade
