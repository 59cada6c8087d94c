#include "models/evaluation/split_evaluation.h"

namespace saccade {

DomainEvaluation domain_evaluation(const DataConfig& data, const FrozenBatch& batch, Evaluation result) {
  const int64_t targets = std::accumulate(result.targets.begin(), result.targets.end(), int64_t{0});
  return {batch.domain, is_ood(data, batch.domain), batch.sequences, targets, std::move(result)};
}

nlohmann::json to_json(const RunEvaluation& evaluation) {
  nlohmann::json domains = nlohmann::json::array();
  for (const DomainEvaluation& d : evaluation.domains)
    domains.push_back({{"domain", d.domain},
                       {"ood", d.ood},
                       {"loss", d.result.loss},
                       {"standard_error", d.result.standard_error},
                       {"bits_per_byte", d.result.bits_per_byte},
                       {"by_sequence", d.result.by_sequence},
                       {"targets", d.result.targets}});
  return {{"step", evaluation.step},
          {"corpus", evaluation.corpus},
          {"corpus_hash", evaluation.corpus_hash},
          {"tokenizer_hash", evaluation.tokenizer_hash},
          {"split", to_string(evaluation.split)},
          {"sequence_length", evaluation.length},
          {"packing", evaluation.packing == Packing::document ? "document" : "packed"},
          {"device", to_string(evaluation.device)},
          {"precision", evaluation.precision},
          {"domains", domains}};
}

}  // namespace saccade
