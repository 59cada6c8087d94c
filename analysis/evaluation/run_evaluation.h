#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "models/corpus/corpus.h"
#include "models/evaluation/evaluation_pass.h"

namespace saccade {

/// What a run's checkpoint is evaluated on. The defaults are what the run itself was evaluated on while it trained.
struct RunEvaluationOptions {
  int64_t checkpoint = 0;  ///< step; 0: the newest
  Split split = Split::validation;
  std::string corpus = {};                ///< empty: the run's
  std::vector<std::string> domains = {};  ///< empty: the run's; of another corpus all that have text in the split
  int64_t length = 0;                     ///< tokens in a sequence; 0: the run's
  int64_t tokens = 0;                     ///< of every domain, in whole sequences, as far as there is text; 0: as while training
  std::string device = {};                ///< empty: the run's
};

struct DomainEvaluation {
  std::string domain;
  bool ood = false;  ///< the run did not train on a domain of this name
  int64_t sequences = 0, tokens = 0;
  Evaluation result;
};
struct RunEvaluation {
  int64_t step = 0;  ///< of the checkpoint
  std::string corpus, corpus_hash;
  Split split = Split::validation;
  int64_t length = 0;
  Device device;
  std::string precision;  ///< of activations and products: "f32", "bf16" …
  std::vector<DomainEvaluation> domains;
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

}  // namespace saccade
