#include "models/evaluation/frozen_batches.h"

#include <algorithm>
#include <numeric>

#include "kernels/engine/error.h"
#include "kernels/engine/parallel.h"
#include "models/suggest.h"
#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

constexpr uint64_t kEvaluationSeed = 20251;  // one for all runs: what is evaluated depends on the text alone

void require_split(const Corpus& corpus, const std::string& domain, Split split) {
  if (!corpus.has_domain(domain)) throw DataError(corpus.missing_domain(domain));
  std::vector<std::string> present;
  for (const DomainInfo& info : corpus.domains())
    if (info.name == domain)
      for (const auto& [name, documents] : info.documents)
        if (documents > 0) present.push_back(name);
  if (std::find(present.begin(), present.end(), to_string(split)) == present.end())
    throw DataError("corpus \"" + corpus.name() + "\" has no " + to_string(split) + " text of domain \"" + domain + "\"" +
                    (present.empty() ? "" : ", only " + alternatives(present)) +
                    ": import it with files that hold some, with more documents, or with --ignore-file-splits");
}

/// Bytes of text that the targets of a batch add to its first tokens.
int64_t bytes_of_targets(const FrozenBatch& batch, const Tokenizer& tokenizer) {
  std::vector<int64_t> bytes(static_cast<size_t>(batch.sequences));
  parallel_for(batch.sequences, [&](int64_t s) {
    std::vector<int32_t> window{batch.tokens[static_cast<size_t>(s * batch.length)]};
    const auto before = static_cast<int64_t>(tokenizer.decode(window).size());
    const auto first = batch.targets.begin() + s * batch.length;
    window.insert(window.end(), first, first + batch.targets_of(s));
    bytes[static_cast<size_t>(s)] = static_cast<int64_t>(tokenizer.decode(window).size()) - before;
  });
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

}  // namespace

int64_t FrozenBatch::targets_of(int64_t sequence) const {
  const auto first = targets.begin() + sequence * length, last = first + length;
  auto end = last;
  while (end != first && *(end - 1) == kNoTarget) --end;
  return end - first;
}

FrozenBatch task_batch(const std::string& task, const std::string& domain, const FrozenText& text) {
  SymbolDomain examples(symbol_task(task), domain, "domain");
  const int64_t length = text.length > 0 ? text.length : examples.length();
  FrozenBatch frozen{domain, {}, {}, text.sequences, length, 0, examples.most_targets()};
  frozen.tokens.resize(static_cast<size_t>(frozen.sequences * length));
  frozen.targets.resize(frozen.tokens.size());
  BatchSource(length, {symbol_sequences(std::move(examples), text.split, length)}, kEvaluationSeed, false)
      .next(frozen.sequences, frozen.tokens, frozen.targets);
  return frozen;
}

FrozenBatch frozen_batch(const Corpus& corpus, const std::string& domain, const FrozenText& text, const Tokenizer& tokenizer) {
  require_split(corpus, domain, text.split);
  BatchSource source({TokenStore::open(corpus, domain, text.split, tokenizer)}, text.length, kEvaluationSeed, true, {}, text.packing);
  FrozenBatch frozen{domain, {}, {}, std::min(text.sequences, source.sequences_per_epoch()), text.length};
  frozen.tokens.resize(static_cast<size_t>(frozen.sequences * frozen.length));
  frozen.targets.resize(frozen.tokens.size());
  source.next(frozen.sequences, frozen.tokens, frozen.targets);
  frozen.bytes = bytes_of_targets(frozen, tokenizer);
  return frozen;
}

std::vector<FrozenBatch> evaluation_batches(const RunConfig& config, const Corpus& corpus, const Tokenizer& tokenizer) {
  const int64_t length = config.data.sequence_length;
  if (!config.data.task.empty()) {
    std::vector<FrozenBatch> batches;
    for (const auto* domains : {&config.data.train, &config.data.ood})
      for (const std::string& domain : *domains)
        batches.push_back(task_batch(config.data.task, domain, {Split::validation, 0, evaluation_sequences(config.training, length)}));
    return batches;
  }
  const FrozenText text{Split::validation, length, evaluation_sequences(config.training, length), parse_packing(config.data.packing)};
  std::vector<FrozenBatch> batches;
  for (const auto* domains : {&config.data.train, &config.data.ood})
    for (const std::string& domain : *domains) batches.push_back(frozen_batch(corpus, domain, text, tokenizer));
  return batches;
}

}  // namespace saccade
