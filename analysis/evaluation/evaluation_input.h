#pragma once
#include "analysis/evaluation/run_evaluation.h"
#include "analysis/training/training_run.h"

namespace saccade {

/// The corpus that the options name, else the run's own. Throws DataError where that is not what the run was trained on.
Corpus evaluation_corpus(const LoadedModel& loaded, const RunEvaluationOptions& options, const EvaluationProgress& progress);

/// The domains that the options name; else the run's, of another corpus all that have text in the split. Throws UsageError for one that
/// the corpus lacks, DataError where there is none.
std::vector<std::string> evaluation_domains(const RunConfig& config, const RunEvaluationOptions& options, const Corpus& corpus);

/// Throws DeviceError where sequences of `length` tokens need more memory than the device has beside the weights, which lie there already,
/// UsageError where the model does not read so many.
void require_evaluation_memory(LoadedModel& loaded, int64_t length);

/// Tokens that the model reads at most: the trained length where positions end there (learned ones, constant tables, Avey without ranker);
/// 0: any number.
int64_t longest_read(const LoadedModel& loaded);

}  // namespace saccade
