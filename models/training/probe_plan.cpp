#include "models/training/probe_plan.h"

#include <algorithm>

#include "models/probe.h"

namespace saccade {
namespace {

ProbeRecord planned_pass(TrainingStep& step, int64_t length, bool maps) {
  ProbeRecord probe;
  probe.planned = true;
  probe.statistics_wanted = !maps;
  probe.maps_wanted = maps;
  const Tensor tokens = step.arena().allocate({1, length}, DType::i32);
  Tape tape(step.arena(), false);
  step.prepare(tape);
  step.model().hidden(tape, tokens, &probe);
  return probe;
}

}  // namespace

ProbePlan plan_probes(TrainingStep& step, const RunConfig& config) {
  step.arena().reset_peak();
  const ProbeRecord statistics = planned_pass(step, config.data.sequence_length, false);
  const ProbeRecord capture = planned_pass(step, config.training.capture_tokens, true);
  ProbePlan plan{step.arena().peak_extent(), std::max(statistics.host_bytes, capture.host_bytes), 0};
  const auto samples = static_cast<int64_t>(1 + config.data.ood.size());  // one of what is trained on, one of each other domain
  for (const CapturedMap& map : capture.maps) {
    plan.held_bytes += samples * map.bytes();
    plan.passing_bytes = std::max(plan.passing_bytes, map.bytes());  // it is read back when it is written
  }
  return plan;
}

}  // namespace saccade
