#include "analysis/comparison/common_sequences.h"

#include <algorithm>
#include <utility>

#include "kernels/engine/error.h"

namespace saccade {
namespace {

/// Of the first `count` sequences alone; NaN for bits per byte, whose text is not known by sequence.
SequenceLosses::Domain first_sequences(const SequenceLosses::Domain& domain, size_t count) {
  SequenceLosses::Domain first{.ood = domain.ood, .by_sequence = domain.by_sequence, .targets = domain.targets};
  first.by_sequence.resize(count);
  if (!first.targets.empty()) first.targets.resize(count);
  double sum = 0, weights = 0;
  for (size_t s = 0; s < count; ++s) {
    const double weight = first.targets.empty() ? 1.0 : static_cast<double>(first.targets[s]);
    sum += weight * first.by_sequence[s], weights += weight;
  }
  first.loss = sum / weights;
  return first;
}

}  // namespace

CommonSequences::CommonSequences(const std::vector<const Run*>& runs, LossesOf losses_of) : losses_of_(std::move(losses_of)) {
  std::map<std::string, std::shared_ptr<const SequenceLosses>> all;
  std::map<std::pair<std::string, std::string>, size_t> counts;  // by text and domain
  for (const Run* run : runs) {
    if (run->info().state != RunState::finished || !run->damage().empty()) continue;
    try {
      const std::shared_ptr<const SequenceLosses> losses = losses_of_(*run);
      if (!losses) continue;
      all[run->info().directory.string()] = losses;
      for (const auto& [name, domain] : losses->domains) {
        const auto [known, first] = counts.try_emplace({losses->text, name}, domain.by_sequence.size());
        if (!first) known->second = std::min(known->second, domain.by_sequence.size());
      }
    } catch (const DataError&) {
      continue;  // of() throws it again
    }
  }
  for (const auto& [directory, losses] : all) {
    std::shared_ptr<SequenceLosses> cut;  // no copy where nothing is cut off
    for (const auto& [name, domain] : losses->domains) {
      const size_t count = counts.at({losses->text, name});
      if (count == domain.by_sequence.size()) continue;
      if (!cut) cut = std::make_shared<SequenceLosses>(*losses);
      cut->domains[name] = first_sequences(domain, count);
    }
    if (cut) cut_[directory] = cut;
  }
}

std::shared_ptr<const SequenceLosses> CommonSequences::of(const Run& run) const {
  const auto found = cut_.find(run.info().directory.string());
  return found == cut_.end() ? losses_of_(run) : found->second;
}

}  // namespace saccade
