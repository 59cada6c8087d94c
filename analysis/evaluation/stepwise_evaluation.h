#pragma once
#include "analysis/evaluation/run_evaluation.h"
#include "analysis/training/training_run.h"

namespace saccade {

/// Losses [sequences · length] in nats of a batch, each from a decoding state that holds the tokens up to its own; 0 where there is no
/// target. `rows`: sequences decoded side by side. Throws UsageError where the model does not decode.
std::vector<double> stepwise_losses(InferenceModel& model, const FrozenBatch& batch, int64_t rows,
                                    const std::function<void(double fraction)>& progress = {});

/// The same batch that one pass has read. Throws UsageError where the model does not decode.
StepwiseEvaluation stepwise_evaluation(LoadedModel& loaded, EvaluationPass& pass, const FrozenBatch& batch, const Evaluation& one_pass,
                                       const EvaluationProgress& progress);

}  // namespace saccade
