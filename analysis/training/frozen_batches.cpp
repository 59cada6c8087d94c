#include <algorithm>

#include "analysis/training/training_run.h"

namespace saccade {
namespace {

constexpr uint64_t kEvaluationSeed = 20251;  // one for all runs: what is evaluated depends on the text alone
constexpr int64_t kTokensPerBatch = 4096;

Trainer::Frozen frozen_batch(const RunConfig& config, const Corpus& corpus, const Tokenizer& tokenizer, const std::string& domain) {
  const int64_t length = config.data.sequence_length;
  BatchSource source({TokenStore::open(corpus, domain, Split::validation, tokenizer)}, length, kEvaluationSeed);
  const int64_t wanted = config.training.evaluation_batches * std::max<int64_t>(1, kTokensPerBatch / length);
  Trainer::Frozen frozen{domain, {}, {}, std::min(wanted, source.sequences_per_epoch()), length};
  frozen.tokens.resize(static_cast<size_t>(frozen.sequences * length));
  frozen.targets.resize(frozen.tokens.size());
  source.next(frozen.sequences, frozen.tokens, frozen.targets);
  return frozen;
}

}  // namespace

std::vector<Trainer::Frozen> evaluation_batches(const RunConfig& config, const Corpus& corpus, const Tokenizer& tokenizer) {
  std::vector<Trainer::Frozen> batches;
  for (const auto* domains : {&config.data.train, &config.data.ood})
    for (const std::string& domain : *domains) batches.push_back(frozen_batch(config, corpus, tokenizer, domain));
  return batches;
}

}  // namespace saccade
