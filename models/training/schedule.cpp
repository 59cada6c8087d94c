#include <cmath>
#include <numbers>

#include "models/training/trainer.h"

namespace saccade {

double scheduled_learning_rate(const TrainingConfig& config, int64_t step) {
  if (step <= config.warmup_steps) return config.learning_rate * static_cast<double>(step) / static_cast<double>(config.warmup_steps);
  if (config.schedule == "constant") return config.learning_rate;
  // 0 at the end of the warm-up, 1 at the last step; there are at least one step and no division by zero in between.
  const double progress = static_cast<double>(step - config.warmup_steps) / static_cast<double>(config.steps - config.warmup_steps);
  const double course = config.schedule == "linear" ? 1 - progress : 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return config.learning_rate * (config.min_lr_ratio + (1 - config.min_lr_ratio) * course);
}

}  // namespace saccade
