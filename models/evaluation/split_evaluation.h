#pragma once
#include <string>
#include <vector>

#include "models/evaluation/evaluation_pass.h"
#include "models/json.h"

namespace saccade {

/// What a model loses on one domain's frozen text.
struct DomainEvaluation {
  std::string domain;
  bool ood = false;                   ///< the run did not train on a domain of this name
  int64_t sequences = 0, tokens = 0;  ///< padding is none
  Evaluation result;
};
DomainEvaluation domain_evaluation(const DataConfig& data, const FrozenBatch& batch, Evaluation result);
/// One model on the domains of a corpus.
struct RunEvaluation {
  int64_t step = 0;  ///< of the checkpoint
  std::string corpus, corpus_hash, tokenizer_hash;
  Split split = Split::validation;
  int64_t length = 0;
  Packing packing = Packing::packed;
  Device device;
  std::string precision;  ///< of activations and products: "f32", "bf16" …
  std::vector<DomainEvaluation> domains;
};

/// As files keep it: of each domain ood, loss, standard_error, bits_per_byte, by_sequence and targets (of each sequence).
nlohmann::json to_json(const RunEvaluation& evaluation);

}  // namespace saccade
