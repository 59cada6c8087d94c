#include "models/training/branch_starts.h"

#include <cmath>

#include "models/schedules/wsd.h"

namespace saccade {

StableSteps stable_steps(const TrainingConfig& training) {
  if (training.schedule != "wsd") return {};
  const WsdSettings wsd = wsd_schema.read(training.schedule_settings, "/training");
  return {warmup_steps(training), training.steps - wsd.cooldown(training.steps)};
}

std::vector<double> cooldown_losses(const TrainingConfig& training) {
  if (training.schedule != "wsd") return {};
  return wsd_schema.read(training.schedule_settings, "/training").cooldown_at_loss;
}

std::vector<int64_t> planned_branches(const TrainingConfig& training) {
  std::vector<int64_t> steps = cooldown_steps_of(training);
  steps.insert(steps.end(), cooldown_losses(training).size(), stable_steps(training).last);
  return steps;
}

int64_t step_at_tokens(const TrainingConfig& training, double tokens) {
  int64_t step = 0;
  double done = 0;
  for (; step < training.batch_warmup_steps && done < tokens; ++step)
    done += static_cast<double>(micro_batches(training, step + 1) * micro_batch_tokens(training));
  return done >= tokens ? step : step + std::llround(std::ceil((tokens - done) / static_cast<double>(training.batch_tokens)));
}

}  // namespace saccade
