#include "models/training/run_pace.h"

#include <algorithm>
#include <array>

#include "kernels/engine/random.h"
#include "models/evaluation/evaluation_pass.h"
#include "models/evaluation/probe_pass.h"
#include "models/training/probe_plan.h"
#include "models/training/training_step.h"

namespace saccade {
namespace {

constexpr double kStepSeconds = 2, kOtherSeconds = 0.3;
constexpr std::array<std::pair<const char*, double RunPace::*>, 4> kParts{{{"seconds_per_step", &RunPace::step},
                                                                           {"seconds_per_evaluated_sequence", &RunPace::evaluated_sequence},
                                                                           {"seconds_per_probed_sequence", &RunPace::probed_sequence},
                                                                           {"seconds_per_captured_sample", &RunPace::captured_sample}}};

class PaceMeasurement {
 public:
  PaceMeasurement(const RunConfig& config, const Plan& plan, double (*clock)())
      : config_(config),
        clock_(clock),
        vocabulary_(plan.vocabulary),
        step_(config, plan.vocabulary, plan.where ? *plan.where : parse_device(config.device)),
        evaluation_(
            step_.model(), step_.arena(), [this](Tape& tape) { step_.prepare(tape); }, micro_batch_tokens(config.training)),
        probes_(step_.model(), step_.arena(), [this](Tape& tape) { step_.prepare(tape); }) {}

  RunPace measure() {
    RunPace pace;
    fill(step_.tokens(), 0);
    fill(step_.targets(), step_.tokens().size());
    thin_out(step_.targets(), step_.most_targets());
    train();  // a GPU records the second one
    pace.step = mean_seconds(kStepSeconds, [&] { train(); });
    const std::vector<FrozenBatch> batches = evaluated();
    int64_t sequences = 0;
    for (const FrozenBatch& batch : batches) sequences += batch.sequences;
    const double all = mean_seconds(kOtherSeconds, [&] { evaluation_.evaluate(batches); });
    pace.evaluated_sequence = all / static_cast<double>(sequences);
    const int64_t length = config_.data.sequence_length;
    const int64_t together = sequences_in_a_probe(config_.training, evaluation_sequences(config_.training, length), length);
    pace.probed_sequence = mean_seconds(kOtherSeconds, [&] { look(together, length, false); }) / static_cast<double>(together);
    const FrozenBatch sample = random_batch(1, std::min(config_.training.capture_tokens, length));
    pace.captured_sample = mean_seconds(kOtherSeconds, [&] {
      look(1, sample.length, true);
      evaluation_.evaluate(sample);
    });
    return pace;
  }

 private:
  /// Mean seconds of doing it for about so long, twice at least; the first time, which touches the memory, is not counted.
  template <class Action>
  double mean_seconds(double about, Action action) const {
    action();
    const double start = clock_();
    int count = 0;
    while (count < 2 || (clock_() - start < about && count < 1000)) action(), ++count;
    return (clock_() - start) / count;
  }

  void fill(std::span<int32_t> tokens, uint64_t first) const {
    const Random random(0, "tokens of a measured step");
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = static_cast<int32_t>(random.below(static_cast<uint64_t>(vocabulary_), first + i));
  }

  void train() {
    const int64_t count = config_.training.gradient_accumulation;
    step_.begin(count, count * step_.most_targets());
    for (int64_t i = 0; i < count; ++i) step_.forward_backward();
    step_.gradient_norm();
    step_.update(config_.training.learning_rate, ++trained_);
    step_.measures();  // waits for the device, as every step of a run does
  }

  FrozenBatch random_batch(int64_t sequences, int64_t length) const {
    const auto size = static_cast<size_t>(sequences * length);
    FrozenBatch batch{"", std::vector<int32_t>(size), std::vector<int32_t>(size), sequences, length};
    fill(batch.tokens, 0);
    fill(batch.targets, size);
    if (config_.data.task.empty()) return batch;
    batch.most_answers = std::min(length, step_.most_targets() / step_.sequences());
    thin_out(batch.targets, sequences * batch.most_answers);
    return batch;
  }
  /// A piece of what an evaluation takes, which repeats it.
  std::vector<FrozenBatch> evaluated() const {
    const auto sequences = [&](int64_t length) {
      return std::min(evaluation_.piece_sequences(length), evaluation_sequences(config_.training, length));
    };
    const int64_t length = config_.data.sequence_length;
    if (config_.data.task.empty()) return {random_batch(sequences(length), length)};
    std::vector<FrozenBatch> batches;
    for (const auto* domains : {&config_.data.train, &config_.data.ood})
      for (const std::string& domain : *domains)
        batches.push_back(task_batch(config_.data.task, domain, {Split::validation, 0, sequences(length)}));
    return batches;
  }

  void look(int64_t sequences, int64_t length, bool maps) {
    const FrozenBatch batch = random_batch(sequences, length);
    ProbeRecord probe;
    probe.statistics_wanted = !maps;
    probe.maps_wanted = maps;
    probes_.run_later(batch, probe).make(probe);
  }

  const RunConfig& config_;
  double (*const clock_)();
  const int64_t vocabulary_;
  TrainingStep step_;
  EvaluationPass evaluation_;
  ProbePass probes_;
  int64_t trained_ = 0;
};

}  // namespace

RunPace measure_pace(const RunConfig& config, const Plan& plan, double (*clock)()) {
  use_threads(config.threads);
  return PaceMeasurement(config, plan, clock).measure();
}

nlohmann::json to_json(const RunPace& pace) {
  nlohmann::json json;
  for (const auto& [name, part] : kParts) json[name] = pace.*part;
  return json;
}

RunPace pace_from(const nlohmann::json& json) {
  RunPace pace;
  for (const auto& [name, part] : kParts) pace.*part = json.at(name).get<double>();
  return pace;
}

}  // namespace saccade
