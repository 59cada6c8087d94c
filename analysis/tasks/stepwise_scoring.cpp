#include "analysis/tasks/stepwise_scoring.h"

#include "analysis/evaluation/stepwise_evaluation.h"

namespace saccade {
namespace {

ScoredRequest score(InferenceModel& model, const EncodedRequest& request, bool greedy) {
  const auto read = static_cast<int64_t>(request.tokens.size()) - 1, prompt = read - request.scored + 1;
  DecodingState state = model.model().begin(model.arena(), model.activations(), 1, read);
  ScoredRequest scored{0, 0, greedy};
  // The prompt's last token predicts the first that is scored; from there on they come one by one.
  for (int64_t at = 0; at < read;) {
    const int64_t end = at == 0 ? prompt : at + 1;
    const std::vector<int32_t> tokens(request.tokens.begin() + at, request.tokens.begin() + end);
    std::vector<int32_t> targets(tokens.size(), kNoTarget);
    targets.back() = request.tokens[static_cast<size_t>(end)];
    const TokenScores found = extended_scores(model, state, tokens, targets, greedy);
    scored.log_likelihood -= found.losses.back();
    if (greedy) scored.greedy = scored.greedy && found.right.back();
    at = end;
  }
  return scored;
}

}  // namespace

void score_stepwise(InferenceModel& model, std::span<const EncodedRequest> requests, std::span<const size_t> which, bool greedy,
                    const std::function<bool(const std::vector<ScoredRequest>&)>& batch) {
  for (const size_t i : which) {
    ScoredRequest scored = score(model, requests[i], greedy);
    scored.request = i;
    if (!batch({scored})) return;
  }
}

}  // namespace saccade
