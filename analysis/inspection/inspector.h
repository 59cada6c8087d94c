#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analysis/inspection/text_sources.h"
#include "analysis/runs/run_records.h"
#include "analysis/training/training_run.h"
#include "models/counterfactual.h"

namespace saccade {

/// A token that may come next.
struct Prediction {
  int32_t token = 0;
  std::string piece;
  double logit = 0, probability = 0;
};
/// What one query predicts.
struct QueryPredictions {
  std::vector<Prediction> top;       ///< the likeliest first
  std::optional<Prediction> target;  ///< the token that follows; none behind the last one
  std::optional<Prediction> answer;  ///< what the query is to answer, where that does not follow in the text
};

/// What a counterfactual changes (docs/inspect.md).
struct CounterfactualResult {
  std::vector<double> losses;  ///< nats of every target with the change, [T − 1], [T] where the last query is asked; 0 where nothing is
  double loss = 0;             ///< of the query that was asked about without the change; NaN where it has none
  int64_t changed_from = -1;   ///< first query whose loss differs; −1: none
  double mean_change = 0;      ///< nats, over the queries from changed_from on that have a loss
  int64_t mean_over = 0;       ///< those queries
  QueryPredictions before, after;  ///< of the query that was asked about; the same tokens in the same order
};

/// A checkpoint that texts are run through, on the CPU in float32. One text at a time.
class Inspector {
 public:
  /// Throws as load_model. `step` 0: the newest checkpoint.
  explicit Inspector(const std::filesystem::path& run, int64_t step = 0);

  const RunConfig& config() const { return loaded_.config; }
  int64_t step() const { return loaded_.step; }
  const Tokenizer& tokenizer() const { return *loaded_.tokenizer; }
  /// Most tokens of a text: 2048, fewer where the maps of all layers and heads would hold more than kMostValues numbers or where the model
  /// takes no longer sequence.
  int64_t longest_text() const;
  static constexpr int64_t kLongest = 2048, kMostValues = int64_t{1} << 26;

  /// Runs a text: its losses (as of CounterfactualResult) and all maps. Throws UsageError where the model does not take it.
  void read(InspectedText text);
  const InspectedText& text() const { return text_; }
  /// Of the text. Throws UsageError before the first one.
  const Capture& capture() const;
  std::string text_as_typed() const;

  /// Of a query of the text: `count` tokens. Throws UsageError where it is not there.
  QueryPredictions predictions(int64_t query, int64_t count);
  /// The text once more with one thing done otherwise, and what that does to query `asked` (usually the change's own); for Avey `query`
  /// of the change is a position, which stands for its split, and `source` a split; `layer` is of no account where one is forced. Throws
  /// UsageError where nobody can do it.
  CounterfactualResult change(const Counterfactual& change, int64_t asked, int64_t count);

 private:
  struct Forward {
    std::vector<float> hidden;   ///< [T, D]
    std::vector<double> losses;  ///< as of CounterfactualResult
  };
  Forward forward(Probe& probe);
  std::vector<double> logits(const Forward& forward, int64_t query);
  Prediction prediction(const std::vector<double>& logits, int32_t token) const;
  std::vector<int32_t> likeliest(const std::vector<double>& logits, int64_t count) const;
  QueryPredictions predictions_of(const std::vector<double>& logits, const std::vector<int32_t>& tokens, int64_t query) const;
  void require_query(int64_t query) const;
  Counterfactual resolved(Counterfactual change) const;

  LoadedModel loaded_;
  InspectedText text_;
  std::optional<Capture> capture_;
  Forward forward_;
};

}  // namespace saccade
