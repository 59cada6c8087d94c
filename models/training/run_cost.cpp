#include "models/training/run_cost.h"

#include <algorithm>
#include <cmath>

#include "models/corpus/vocabulary.h"
#include "models/schedules/wsd.h"
#include "models/training/decoder.h"

namespace saccade {

int64_t branch_steps(const TrainingConfig& training) {
  if (training.schedule != "wsd") return 0;
  const WsdSettings wsd = wsd_schema.read(training.schedule_settings, "/training");
  int64_t steps = 0;
  for (const int64_t start : cooldown_steps_of(training)) steps += wsd.branch_cooldown(start);
  return steps;
}

double run_seconds(const RunConfig& config, const Plan& plan, double step_seconds) {
  const auto steps = static_cast<double>(config.training.steps + branch_steps(config.training));
  const double every = static_cast<double>(std::max<int64_t>(1, config.training.evaluate_every));
  const double evaluations = config.training.evaluate_every > 0 ? std::ceil(steps / every) : 1;
  return step_seconds * (steps + evaluations * plan.flops_per_evaluation / plan.flops_per_step);
}

int64_t checkpoint_bytes(const Plan& plan) { return 4 * plan.parameters + plan.optimizer_bytes; }

int64_t checkpoints_kept(const TrainingConfig& training) {
  const auto branches = static_cast<int64_t>(cooldown_steps_of(training).size());
  return 3 + static_cast<int64_t>(training.keep_checkpoints.size()) + 4 * branches;
}

int64_t captures_kept(const TrainingConfig& training) {
  const int64_t every = training.capture_every > 0 ? training.capture_every : training.checkpoint_every;
  const int64_t on_the_way = every > 0 ? training.steps / every : 0;
  const bool at_the_end = every <= 0 || training.steps % every != 0;
  return on_the_way + (at_the_end ? 1 : 0) + (training.evaluate_at_start ? 1 : 0);
}

int64_t count_embedding_parameters(const RunConfig& config) {
  const InferenceModel model(config.architecture, vocabulary_of(config.data.tokenizer), config.data.sequence_length,
                             Device::plan(Engine::cpu), "f32", static_cast<uint64_t>(config.training.seed));
  int64_t count = 0;
  for (const Parameter& parameter : model.model().parameters())
    if (parameter.name == "embedding" || parameter.name == "position") count += parameter.value.size();
  return count;
}

}  // namespace saccade
