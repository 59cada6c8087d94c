#include "analysis/training/observe.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "kernels/engine/parallel.h"
#include "kernels/ops/shared/sequences.h"
#include "models/architectures/stack.h"
#include "models/training/probe_plan.h"

namespace saccade {
namespace {

/// The first `length` tokens of some sequences.
FrozenBatch part(const FrozenBatch& batch, const Sequences& sequences, int64_t length) {
  const auto cut = [&](const std::vector<int32_t>& all) {
    std::vector<int32_t> some;
    for (int64_t s = sequences.first; s < sequences.first + sequences.count; ++s)
      some.insert(some.end(), all.begin() + s * batch.length, all.begin() + s * batch.length + length);
    return some;
  };
  return {batch.domain, cut(batch.tokens), cut(batch.targets), sequences.count, length, 0, std::min(batch.most_answers, length)};
}

/// The sequences that statistics are of, those with as many targets that stand next to each other in one pass; padding is not looked at.
std::vector<FrozenBatch> probed_parts(const FrozenBatch& batch, int64_t in_a_pass) {
  const int64_t count = probed_sequences(batch.sequences, batch.length);
  std::vector<FrozenBatch> parts;
  for (int64_t first = 0, next = 0; first < count; first = next) {
    const int64_t length = batch.targets_of(first);
    for (next = first + 1; next < count && next - first < in_a_pass && batch.targets_of(next) == length;) ++next;
    parts.push_back(part(batch, {first, next - first}, length));
  }
  return parts;
}

/// The first sequence with so many targets, else the first of the longest.
int64_t sequence_of(const FrozenBatch& batch, int64_t targets) {
  int64_t longest = 0;
  for (int64_t s = 0; s < batch.sequences && batch.targets_of(longest) < targets; ++s)
    if (batch.targets_of(s) > batch.targets_of(longest)) longest = s;
  return longest;
}

/// Sums without NaN, and of how many sequences.
struct Mean {
  std::vector<double> sum;
  std::vector<int64_t> count;
  void add(const HeadStatistic& mean) {
    sum.resize(mean.heads.size());
    count.resize(mean.heads.size());
    for (size_t i = 0; i < mean.heads.size(); ++i) {
      if (std::isnan(mean.heads[i])) continue;
      const int64_t sequences = mean.counts.empty() ? 1 : mean.counts[i];
      sum[i] += static_cast<double>(sequences) * mean.heads[i];
      count[i] += sequences;
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
  if (!trainer.config().data.task.empty()) {
    auto& asked = begun.capture.asked.emplace();
    for (size_t t = 0; t < begun.text.targets.size(); ++t)
      if (begun.text.targets[t] != kNoTarget) asked[static_cast<int64_t>(t)] = begun.text.targets[t];
  }
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
void add_churn(StatisticsRecord& record, const ProbedChoices& before, const ProbedChoices& now) {
  if (before.empty() || now.empty()) return;
  for (const ChosenSources& layer : now.front()) {
    const auto is_same = [&](const ChosenSources& c) { return c.layer == layer.layer; };
    std::vector<std::vector<double>> sequences;
    for (size_t s = 0; s < now.size(); ++s) {
      const std::vector<ChosenSources> was_there = s < before.size() ? before[s] : std::vector<ChosenSources>();
      const auto was = std::find_if(was_there.begin(), was_there.end(), is_same), is = std::find_if(now[s].begin(), now[s].end(), is_same);
      std::vector<double> heads = was == was_there.end() || is == now[s].end() ? std::vector<double>() : churn(*was, *is);
      if (heads.empty()) heads.assign(static_cast<size_t>(layer.heads), std::nan(""));
      sequences.push_back(std::move(heads));
    }
    record.statistics.push_back(mean_of_sequences("churn", "1", layer.layer, sequences));
  }
}

}  // namespace

StatisticsRecord probe_statistics(Trainer& trainer, const FrozenBatch& batch, const Position& at, ProbedChoices& last) {
  const std::vector<FrozenBatch> parts =
      probed_parts(batch, sequences_in_a_probe(trainer.config().training, batch.sequences, batch.length));
  std::vector<ProbeRecord> probes(parts.size());
  std::vector<LateReports> reports(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    probes[i].longest_planned = batch.length;
    reports[i] = trainer.probe_later(parts[i], probes[i]);
  }
  parallel_for(std::ssize(parts), [&](int64_t i) { reports[static_cast<size_t>(i)].make(probes[static_cast<size_t>(i)]); });
  StatisticsRecord record{at, probes.front().statistics};
  std::vector<Mean> means(record.statistics.size());
  ProbedChoices chosen;
  for (ProbeRecord& probe : probes) {
    for (size_t i = 0; i < means.size(); ++i) means[i].add(probe.statistics.at(i));
    std::move(probe.choices.begin(), probe.choices.end(), std::back_inserter(chosen));
  }
  for (size_t i = 0; i < means.size(); ++i) record.statistics[i].heads = means[i].values();
  add_churn(record, last, chosen);
  for (HeadStatistic& statistic : record.statistics) statistic.counts.clear();
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
