#include "models/training/probe_plan.h"

#include <algorithm>

#include "models/probe.h"

namespace saccade {
namespace {

ProbeRecord planned_pass(TrainingStep& step, int64_t sequences, int64_t length, bool maps) {
  ProbeRecord probe;
  probe.planned = true;
  probe.statistics_wanted = !maps;
  probe.maps_wanted = maps;
  const Tensor tokens = step.arena().allocate({sequences, length}, DType::i32);
  Tape tape(step.arena(), false);
  step.prepare(tape);
  step.model().hidden(tape, tokens, &probe);
  return probe;
}

}  // namespace

int64_t probed_sequences(int64_t sequences, int64_t length) { return std::min(sequences, std::max<int64_t>(1, kProbedTokens / length)); }

int64_t sequences_in_a_probe(const TrainingConfig& training, int64_t sequences, int64_t length) {
  return std::min(probed_sequences(sequences, length), std::max<int64_t>(1, micro_batch_tokens(training) / length));
}

ProbePlan plan_probes(TrainingStep& step, const RunConfig& config) {
  const int64_t length = config.data.sequence_length, frozen = evaluation_sequences(config.training, length);
  step.arena().reset_peak();
  const ProbeRecord statistics = planned_pass(step, sequences_in_a_probe(config.training, frozen, length), length, false);
  const ProbeRecord capture = planned_pass(step, 1, config.training.capture_tokens, true);
  ProbePlan plan{step.arena().peak_extent(), std::max(statistics.host_bytes, capture.host_bytes), 0};
  const auto samples = static_cast<int64_t>(1 + config.data.ood.size());  // one of what is trained on, one of each other domain
  for (const CapturedMap& map : capture.maps) {
    plan.held_bytes += samples * map.bytes();
    plan.passing_bytes = std::max(plan.passing_bytes, map.bytes());  // it is read back when it is written
  }
  return plan;
}

}  // namespace saccade
