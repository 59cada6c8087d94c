#include "models/schedules/registry.h"
#include "models/training/trainer.h"

namespace saccade {

double scheduled_learning_rate(const TrainingConfig& config, int64_t step) {
  const int64_t warmup = warmup_steps(config);
  if (step <= warmup) return config.learning_rate * static_cast<double>(step) / static_cast<double>(warmup);
  // There are at least one step and no division by zero between the end of the warm-up and the last step.
  const double course = schedule(config.schedule).course({step, warmup, config.steps}, config.schedule_settings);
  return config.learning_rate * (config.min_lr_ratio + (1 - config.min_lr_ratio) * course);
}

}  // namespace saccade
