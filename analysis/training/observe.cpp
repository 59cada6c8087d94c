#include "analysis/training/observe.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "kernels/engine/parallel.h"
#include "models/architectures/stack.h"
#include "models/training/run_cost.h"

namespace saccade {
namespace {

/// The first `length` tokens of one sequence.
FrozenBatch part(const FrozenBatch& batch, int64_t sequence, int64_t length) {
  const auto cut = [&](const std::vector<int32_t>& all) {
    const auto begin = all.begin() + sequence * batch.length;
    return std::vector<int32_t>(begin, begin + length);
  };
  return {batch.domain, cut(batch.tokens), cut(batch.targets), 1, length, 0, std::min(batch.most_answers, length)};
}

/// The first sequence with so many targets, else the first of the longest.
int64_t sequence_of(const FrozenBatch& batch, int64_t targets) {
  int64_t longest = 0;
  for (int64_t s = 0; s < batch.sequences && batch.targets_of(longest) < targets; ++s)
    if (batch.targets_of(s) > batch.targets_of(longest)) longest = s;
  return longest;
}

/// Sums without NaN, and how many were summed.
struct Mean {
  std::vector<double> sum;
  std::vector<int64_t> count;
  void add(const std::vector<double>& values) {
    sum.resize(values.size());
    count.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) continue;
      sum[i] += values[i];
      ++count[i];
    }
  }
  std::vector<double> values() const {
    std::vector<double> means;
    for (size_t i = 0; i < sum.size(); ++i) means.push_back(count[i] > 0 ? sum[i] / static_cast<double>(count[i]) : std::nan(""));
    return means;
  }
};

/// What is known of a capture before a GPU has computed it, and how the rest is had.
struct BegunCapture {
  FrozenBatch text;
  Capture capture;
  ProbeRecord probe;
  LateReports reports;

  Capture finish(const Evaluation* losses) {
    reports.make(probe);
    capture.maps = std::move(probe.maps);
    capture.selections = std::move(probe.selections);
    if (losses)
      for (const double loss : losses->by_position) capture.token_losses.push_back(static_cast<float>(loss));
    capture.token_losses.resize(text.tokens.size());
    return std::move(capture);
  }
};

BegunCapture begin_capture(Trainer& trainer, FrozenBatch text, int64_t sample, const Tokenizer& tokenizer, const Position& at) {
  BegunCapture begun{std::move(text), {}, {}, {}};
  begun.capture.at = at;
  begun.capture.domain = begun.text.domain;
  begun.capture.sample = sample;
  begun.capture.tokens = begun.text.tokens;
  begun.capture.layer_mixers = layer_titles(trainer.config().architecture);
  for (const int32_t token : begun.text.tokens) begun.capture.pieces.push_back(tokenizer.piece(token));
  begun.probe.statistics_wanted = false;
  begun.probe.maps_wanted = true;
  begun.reports = trainer.probe_later(begun.text, begun.probe);
  return begun;
}

}  // namespace

EvaluationRecord evaluate_domains(Trainer& trainer, const std::vector<FrozenBatch>& batches, const Position& at) {
  EvaluationRecord record{at, {}};
  const std::vector<Evaluation> evaluations = trainer.evaluate(batches);
  for (size_t i = 0; i < batches.size(); ++i) {
    const FrozenBatch& batch = batches[i];
    const Evaluation& evaluation = evaluations[i];
    record.losses.push_back({batch.domain, is_ood(trainer.config().data, batch.domain), evaluation.loss, evaluation.standard_error,
                             evaluation.bits_per_byte, loss_by_position(evaluation.by_position, evaluation.targets_at),
                             evaluation.accuracy});
  }
  return record;
}

DataRecord data_use(const Trainer& trainer, const Position& at) {
  DataRecord record{at, {}};
  const std::vector<int64_t> taken = trainer.data().taken(trainer.data_position()), sizes = trainer.data().sizes();
  for (size_t i = 0; i < taken.size(); ++i)
    record.domains.push_back({trainer.config().data.train.at(i), taken[i], static_cast<double>(taken[i]) / static_cast<double>(sizes[i])});
  return record;
}

namespace {

/// Of every layer that chooses; NaN where what was chosen before was of another size.
void add_churn(ProbeRecord& probe, const std::vector<ChosenSources>& before) {
  for (const ChosenSources& now : probe.choices) {
    const auto same = std::find_if(before.begin(), before.end(), [&](const ChosenSources& c) { return c.layer == now.layer; });
    std::vector<double> heads = same == before.end() ? std::vector<double>() : churn(*same, now);
    if (heads.empty()) heads.assign(static_cast<size_t>(now.heads), std::nan(""));
    probe.statistics.push_back({"churn", "1", now.layer, std::move(heads)});
  }
}

}  // namespace

StatisticsRecord probe_statistics(Trainer& trainer, const FrozenBatch& batch, const Position& at, ProbedChoices& last) {
  StatisticsRecord record{at, {}};
  ProbedChoices chosen;
  std::vector<Mean> means;
  const auto sequences = static_cast<size_t>(std::min(batch.sequences, std::max<int64_t>(1, kProbedTokens / batch.length)));
  std::vector<ProbeRecord> probes(sequences);
  std::vector<LateReports> reports(sequences);
  for (size_t s = 0; s < sequences; ++s) {
    const auto sequence = static_cast<int64_t>(s);
    reports[s] = trainer.probe_later(part(batch, sequence, batch.targets_of(sequence)), probes[s]);  // padding is not looked at
  }
  parallel_for(static_cast<int64_t>(sequences), [&](int64_t s) { reports[static_cast<size_t>(s)].make(probes[static_cast<size_t>(s)]); });
  for (size_t s = 0; s < sequences; ++s) {
    ProbeRecord& probe = probes[s];
    if (!last.empty()) add_churn(probe, s < last.size() ? last[s] : std::vector<ChosenSources>());
    if (!probe.choices.empty()) chosen.push_back(std::move(probe.choices));
    if (s == 0) record.statistics = probe.statistics;
    means.resize(record.statistics.size());
    for (size_t i = 0; i < means.size(); ++i) means[i].add(probe.statistics.at(i).heads);
  }
  for (size_t i = 0; i < means.size(); ++i) record.statistics[i].heads = means[i].values();
  last = std::move(chosen);
  return record;
}

namespace {

/// Of this process; 0 where the system does not tell.
int64_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return 1024 * std::strtoll(line.c_str() + 6, nullptr, 10);
  return 0;
}

}  // namespace

MemoryRecord memory_use(Trainer& trainer, const Position& at) { return {at, trainer.arena().peak_extent(), resident_bytes()}; }

std::function<std::vector<Capture>()> capture_samples(Trainer& trainer, const std::vector<FrozenBatch>& batches, const Tokenizer& tokenizer,
                                                      const Position& at) {
  const auto begun = std::make_shared<std::vector<BegunCapture>>();
  std::vector<FrozenBatch> asked;  // without those where nothing is asked in this part of an example
  bool trained_on = false;
  for (const FrozenBatch& batch : batches) {
    const bool ood = is_ood(trainer.config().data, batch.domain);
    if (!ood && trained_on) continue;
    trained_on |= !ood;
    const int64_t wanted = std::min(trainer.config().training.capture_tokens, batch.length), sequence = sequence_of(batch, wanted);
    FrozenBatch text = part(batch, sequence, std::min(wanted, batch.targets_of(sequence)));
    if (text.targets_of(0) > 0) asked.push_back(text);
    begun->push_back(begin_capture(trainer, std::move(text), static_cast<int64_t>(begun->size()), tokenizer, at));
  }
  return [begun, losses = trainer.evaluate(asked)] {
    std::vector<Capture> captures;
    size_t next = 0;
    for (BegunCapture& b : *begun) captures.push_back(b.finish(b.text.targets_of(0) > 0 ? &losses[next++] : nullptr));
    return captures;
  };
}

}  // namespace saccade
