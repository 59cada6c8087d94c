#include "models/training/run_cost.h"

#include <algorithm>
#include <cmath>

#include "models/corpus/vocabulary.h"
#include "models/schedules/wsd.h"
#include "models/training/branch_starts.h"
#include "models/training/decoder.h"
#include "models/training/probe_plan.h"

namespace saccade {

int64_t branch_steps(const TrainingConfig& training) {
  if (training.schedule != "wsd") return 0;
  const WsdSettings wsd = wsd_schema.read(training.schedule_settings, "/training");
  int64_t steps = 0;
  for (const int64_t start : planned_branches(training)) steps += wsd.branch_cooldown(start);
  return steps;
}

namespace {

/// How many of the steps behind `first` up to `last` are measured at: every so many, and the last.
int64_t times_due(int64_t every, int64_t first, int64_t last) {
  if (every <= 0) return 1;
  return last / every - first / every + (last % every != 0 ? 1 : 0);
}

}  // namespace

RunWork run_work(const RunConfig& config, const Plan& plan) {
  const TrainingConfig& training = config.training;
  const int64_t length = config.data.sequence_length, sequences = evaluation_sequences(training, length);
  const auto domains = static_cast<int64_t>(config.data.train.size() + config.data.ood.size());
  const int64_t probed = probed_sequences(sequences, length);
  const auto samples = static_cast<int64_t>(1 + config.data.ood.size());
  const int64_t capture_every = training.capture_every > 0 ? training.capture_every : training.checkpoint_every;
  RunWork work;
  const auto add = [&](int64_t evaluations, int64_t probes, int64_t captures) {
    work.evaluated_sequences += evaluations * sequences * domains;
    work.probed_sequences += probes * probed;
    work.captured_samples += captures * samples;
  };
  const auto train = [&](int64_t first, int64_t last) {
    add(times_due(training.evaluate_every, first, last), times_due(training.probe_every, first, last),
        times_due(capture_every, first, last));
    work.evaluated_sequences += domains * final_evaluation_sequences(config, last - first);
  };
  work.steps = plan.run_flops / plan.flops_per_step + static_cast<double>(branch_steps(training));
  train(0, training.steps);
  if (training.evaluate_at_start) add(1, 1, 1);
  if (training.schedule != "wsd") return work;
  const WsdSettings wsd = wsd_schema.read(training.schedule_settings, "/training");
  for (const int64_t start : planned_branches(training)) train(start, start + wsd.branch_cooldown(start));
  return work;
}

double run_seconds(const RunConfig& config, const Plan& plan, const RunPace& pace) {
  const RunWork work = run_work(config, plan);
  return pace.step * work.steps + pace.evaluated_sequence * static_cast<double>(work.evaluated_sequences) +
         pace.probed_sequence * static_cast<double>(work.probed_sequences) +
         pace.captured_sample * static_cast<double>(work.captured_samples);
}

int64_t checkpoint_bytes(const Plan& plan) { return 4 * plan.parameters + plan.optimizer_bytes; }

int64_t checkpoints_kept(const TrainingConfig& training) {
  const auto branches = static_cast<int64_t>(planned_branches(training).size());
  const int64_t written = times_due(training.checkpoint_every, 0, training.steps) + (training.evaluate_at_start ? 1 : 0);
  return std::min<int64_t>(3, written) + static_cast<int64_t>(training.keep_checkpoints.size()) + 4 * branches;
}

int64_t captures_kept(const TrainingConfig& training) {
  const int64_t every = training.capture_every > 0 ? training.capture_every : training.checkpoint_every;
  const int64_t on_the_way = every > 0 ? training.steps / every : 0;
  const bool at_the_end = every <= 0 || training.steps % every != 0;
  return on_the_way + (at_the_end ? 1 : 0) + (training.evaluate_at_start ? 1 : 0);
}

int64_t count_embedding_parameters(const RunConfig& config) {
  const InferenceModel model(config.architecture, padded_vocabulary(vocabulary_of(config.data.tokenizer), config.data.vocabulary_multiple),
                             config.data.sequence_length, Device::plan(Engine::cpu), "f32", static_cast<uint64_t>(config.training.seed));
  return count_embedding_parameters(model.model());
}

int64_t count_embedding_parameters(const Model& model) {
  int64_t count = 0;
  for (const Parameter& parameter : model.parameters())
    if (parameter.name == "embedding" || parameter.name == "position") count += parameter.value.size();
  return count;
}

}  // namespace saccade
