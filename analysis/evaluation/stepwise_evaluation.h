#pragma once
#include "analysis/evaluation/run_evaluation.h"
#include "analysis/training/training_run.h"

namespace saccade {

/// Feeds `tokens` [batch, n] to a decoding state and scores `targets`, the tokens that follow each: nats, 0 where there is none. `right`:
/// also whether they are the first of the likeliest.
TokenScores extended_scores(InferenceModel& model, DecodingState& state, const std::vector<int32_t>& tokens,
                            const std::vector<int32_t>& targets, bool right);

/// Losses [sequences · length] in nats of a batch, each from a decoding state that holds the tokens up to its own; 0 where there is no
/// target. `rows`: sequences decoded side by side. Throws UsageError where the model does not decode.
std::vector<double> stepwise_losses(InferenceModel& model, const FrozenBatch& batch, int64_t rows,
                                    const std::function<void(double fraction)>& progress = {});

/// The same batch that one pass has read. Throws UsageError where the model does not decode.
StepwiseEvaluation stepwise_evaluation(LoadedModel& loaded, EvaluationPass& pass, const FrozenBatch& batch, const Evaluation& one_pass,
                                       const EvaluationProgress& progress);

}  // namespace saccade
