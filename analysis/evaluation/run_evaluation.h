#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "analysis/comparison/sequence_losses.h"
#include "models/corpus/corpus.h"
#include "models/evaluation/split_evaluation.h"

namespace saccade {

/// What a run's checkpoint is evaluated on. The defaults are what the run itself was evaluated on while it trained.
struct RunEvaluationOptions {
  int64_t checkpoint = 0;  ///< step; 0: the newest
  Split split = Split::validation;
  std::string corpus = {};                ///< empty: the run's
  std::vector<std::string> domains = {};  ///< empty: the run's; of another corpus all that have text in the split
  int64_t length = 0;                     ///< tokens in a sequence; 0: the run's
  std::string packing = {};               ///< "packed" or "document"; empty: the run's
  int64_t tokens = 0;                     ///< of every domain, in whole sequences, as far as there is text; 0: as while training
  std::string device = {};                ///< empty: the run's
};

struct EvaluationProgress {
  std::function<void(const std::string& line)> message;
  std::function<void(double fraction, const std::string& domain)> done;
};

/// Runs a checkpoint's weights forward over frozen text: no gradients, no moments, no training text. The same options give the same
/// numbers. Throws UsageError for a domain that the corpus lacks, fewer tokens than a sequence or a length that the model does not
/// take; DataError when run, checkpoint or corpus is missing or damaged, the run's own corpus is not what it was trained on, or the
/// split has no text of a domain; DeviceError when the device is missing or has too little memory.
RunEvaluation evaluate_run(const std::filesystem::path& directory, const RunEvaluationOptions& options,
                           const EvaluationProgress& progress = {});

/// A domain read token by token, as generation reads: the loss of each target from a state that has seen no token behind it. For a causal
/// model that is one pass, up to rounding; Avey's ranker with `ranker_query` split sees in one pass the whole split (arXiv:2506.11305,
/// section 3.1), its own targets among it.
struct StepwiseEvaluation {
  double loss = 0, standard_error = 0;  ///< nats per token, over the sequences
  double price = 0, price_error = 0;    ///< `loss` less that of one pass: the price of looking ahead, sequence by sequence
  std::vector<double> by_sequence;      ///< means of each
};
struct BothReadings {
  RunEvaluation one_pass;
  std::vector<StepwiseEvaluation> stepwise;  ///< of each of its domains
};
/// Evaluates as evaluate_run does, and by decoding the same sequences token by token. Throws what evaluate_run throws, UsageError also
/// where the model does not decode.
BothReadings evaluate_readings(const std::filesystem::path& directory, const RunEvaluationOptions& options,
                               const EvaluationProgress& progress = {});

/// Several runs on the same sequences.
struct PairedEvaluation {
  std::vector<RunEvaluation> runs;
  std::vector<SequenceLosses> losses;  ///< of each run, to be compared in pairs
  int64_t tokens = 0;                  ///< of every domain, as far as there is text
  bool whole_split = false;            ///< there was no more
};
/// The losses of every sequence, to be compared in pairs.
SequenceLosses sequence_losses(const RunEvaluation& evaluation);

/// Evaluates several runs as evaluate_run does, with more and more tokens (tokens_for_error) until the error of every difference to the
/// first run is at most `error` nats, or the split ends. `options.tokens` are the first; 0: as while the first run trained. Throws what
/// evaluate_run throws, and DataError where the runs' text or tokenizers differ.
PairedEvaluation evaluate_pairs(const std::vector<std::filesystem::path>& directories, RunEvaluationOptions options, double error,
                                const EvaluationProgress& progress = {});

}  // namespace saccade
