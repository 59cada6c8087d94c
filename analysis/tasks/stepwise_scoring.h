#pragma once
#include "analysis/tasks/scoring.h"
#include "models/training/decoder.h"

namespace saccade {

/// Scores requests as score_requests does, but each token of a continuation from a decoding state that has seen no token behind it, as
/// generation reads: for models that look ahead. `batch` hears of each request. Throws UsageError where the model does not decode.
void score_stepwise(InferenceModel& model, std::span<const EncodedRequest> requests, std::span<const size_t> which, bool greedy,
                    const std::function<bool(const std::vector<ScoredRequest>&)>& batch);

}  // namespace saccade
