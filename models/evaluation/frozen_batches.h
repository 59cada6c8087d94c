#pragma once
#include <algorithm>

#include "models/config/config.h"
#include "models/corpus/corpus.h"

namespace saccade {

/// Sequences that are the same at every evaluation.
struct FrozenBatch {
  std::string domain;
  std::vector<int32_t> tokens, targets;  ///< [sequences, length] each; targets are the tokens one later, or kNoTarget
  int64_t sequences = 0, length = 0;
  int64_t bytes = 0;  ///< of text that the targets stand for, ends of text apart; 0: not known
  /// Of a generated task the most targets of a sequence, which stand anywhere, and are right or wrong; 0: text.
  int64_t most_answers = 0;

  int64_t targets_of(int64_t sequence) const;  ///< positions up to the last that counts; of text all of them count
};

/// Which part of a domain is frozen.
struct FrozenText {
  Split split = Split::validation;
  int64_t length = 0;     ///< tokens in a sequence
  int64_t sequences = 0;  ///< at most; a domain with less text gives all it has
  Packing packing = Packing::packed;
};
/// The choice depends on the text, the tokenizer and the length alone: fewer sequences are the first of more. Throws DataError when
/// the split has no text of that domain, or not one sequence.
FrozenBatch frozen_batch(const Corpus& corpus, const std::string& domain, const FrozenText& text, const Tokenizer& tokenizer);

/// Examples of a generated task, the first of its split, in rows of `text.length` tokens (0: the domain's own length).
FrozenBatch task_batch(const std::string& task, const std::string& domain, const FrozenText& text);

/// The domains that a run did not train on are OOD.
inline bool is_ood(const DataConfig& data, const std::string& domain) {
  return std::find(data.train.begin(), data.train.end(), domain) == data.train.end();
}

/// What a run is evaluated on while it trains: validation text, packed as its training text is, a batch for each domain, training domains
/// first. The same for every run on the same corpus, tokenizer, packing and sequence length. Throws DataError.
std::vector<FrozenBatch> evaluation_batches(const RunConfig& config, const Corpus& corpus, const Tokenizer& tokenizer);

}  // namespace saccade
