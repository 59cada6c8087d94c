#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "models/evaluation/evaluation_pass.h"
#include "models/json.h"

namespace saccade {

/// Losses of the same documents read to several lengths, the trained length T and beyond (`saccade evaluate --lengths`). Nats per token;
/// standard errors are those over the documents.
struct LengthLosses {
  /// The same targets read token by token, as generation reads, and how much more that loses than one pass, document by document: the price
  /// of looking ahead. Of a causal model it is 0, up to rounding.
  struct Stepwise {
    double loss = 0, error = 0, price = 0, price_error = 0;
    double last = 0, last_error = 0, last_price = 0, last_price_error = 0;  ///< of the last targets, as `last`
  };
  struct At {
    int64_t length = 0;                     ///< tokens that the model reads
    double loss = 0, error = 0;             ///< of the document's first `length` targets, read from its beginning
    double last = 0, last_error = 0;        ///< of the last T/2 targets before the greatest length, the same ones for every length
    double change = 0, change_error = 0;    ///< `last` less that of the shortest length, document by document: what more context gives
    std::vector<PositionLoss> by_position;  ///< of `loss`, in bins of powers of two
    std::optional<Stepwise> stepwise;       ///< where it was asked for
    std::vector<double> by_document, last_by_document;  ///< means of each document
  };
  struct Domain {
    std::string domain;
    bool ood = false;
    std::vector<At> lengths;  ///< ascending
  };
  int64_t step = 0;                            ///< of the checkpoint
  int64_t trained_length = 0;                  ///< T
  int64_t greatest = 0;                        ///< length that was asked for, where the last targets end
  int64_t least_tokens = 0;                    ///< that documents have
  std::vector<int64_t> not_read;               ///< lengths that the model does not read: its positions end at T
  std::vector<std::string> without_documents;  ///< domains without a document of `least_tokens`
  std::string looks_ahead;                     ///< why the losses are no causal model's (looks_ahead()); empty: they are
  std::string corpus, corpus_hash, tokenizer_hash, split, device, precision;
  std::vector<Domain> domains;
};

/// As files keep it.
nlohmann::json to_json(const LengthLosses& losses);
/// Throws DataError naming `origin` when something is missing or of the wrong kind.
LengthLosses parse_length_losses(const nlohmann::json& object, const std::string& origin);

/// RUN/evaluations/step-12.validation.lengths-1a2b3c4d.json, with the corpus' hash: of one checkpoint, split and corpus the newest stays.
std::filesystem::path length_losses_file(const std::filesystem::path& run, const LengthLosses& losses);
/// Of each run its losses over length; null where one has none. They are of one split and corpus where they can be: of those that most of
/// the runs were evaluated on the one that was written last. A run that was not evaluated on it has its newest. Of a run those of the
/// newest checkpoint, and of that the ones written last. `more`: also whether a run has losses of other text, so that a choice was made.
/// Throws DataError for a damaged file.
std::vector<std::shared_ptr<const LengthLosses>> comparable_length_losses(const std::vector<std::filesystem::path>& runs,
                                                                          bool* more = nullptr);
/// The same of one run.
std::shared_ptr<const LengthLosses> newest_length_losses(const std::filesystem::path& run);

}  // namespace saccade
