#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

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

/// Several runs on the same sequences.
struct PairedEvaluation {
  std::vector<RunEvaluation> runs;
  int64_t tokens = 0;        ///< of every domain, as far as there is text
  bool whole_split = false;  ///< there was no more
};
/// A difference between two means over domains, those trained on or OOD ones, and its standard error over the sequences, √Σ e_d² / D, with
/// e_d that of a domain's mean difference (standard_error). NaN where they share no such domain, and where there is one sequence.
struct PairedDifference {
  double difference = std::numeric_limits<double>::quiet_NaN(), error = std::numeric_limits<double>::quiet_NaN();
};
/// a − b; which domains are OOD, a says. Throws DataError where the two were not evaluated on the same sequences.
PairedDifference paired_difference(const RunEvaluation& a, const RunEvaluation& b, bool ood);

/// Evaluates several runs as evaluate_run does, with twice the tokens again and again until the error of every difference to the first run
/// is at most `error` nats, or the split ends. `options.tokens` are the first; 0: as while the first run trained. Throws what evaluate_run
/// throws, and DataError where the runs' text or tokenizers differ.
PairedEvaluation evaluate_pairs(const std::vector<std::filesystem::path>& directories, RunEvaluationOptions options, double error,
                                const EvaluationProgress& progress = {});

}  // namespace saccade
