#include "analysis/evaluation/stepwise_evaluation.h"

#include <algorithm>

#include "kernels/engine/error.h"
#include "kernels/engine/transfer.h"
#include "kernels/ops/cross_entropy/cross_entropy.h"

namespace saccade {
namespace {

/// One column of a batch: what the sequences first … first + rows - 1 have at position t.
std::vector<int32_t> column(const std::vector<int32_t>& values, int64_t length, int64_t first, int64_t rows, int64_t t) {
  std::vector<int32_t> at;
  for (int64_t row = first; row < first + rows; ++row) at.push_back(values[static_cast<size_t>(row * length + t)]);
  return at;
}

}  // namespace

TokenScores extended_scores(InferenceModel& model, DecodingState& state, const std::vector<int32_t>& tokens,
                            const std::vector<int32_t>& targets, bool right) {
  const int64_t rows = state.batch, length = static_cast<int64_t>(tokens.size()) / rows;
  Tape tape(model.arena(), false);
  model.prepare(tape);
  const Tensor x = model.arena().allocate({rows, length}, DType::i32), y = model.arena().allocate({rows, length}, DType::i32);
  copy_from_host(x, tokens.data());
  copy_from_host(y, targets.data());
  const Tensor likeliest = right ? model.arena().allocate({rows * length}, DType::i32) : Tensor();
  const Tensor hidden = model.model().extend(tape, x, state);
  const CrossEntropy loss = linear_cross_entropy(tape, hidden, model.model().output_weight(), y, {.largest = likeliest});
  TokenScores scores{to_doubles(loss.tokens), {}};
  if (!right) return scores;
  std::vector<int32_t> found(tokens.size());
  copy_to_host(found.data(), likeliest);
  for (size_t i = 0; i < found.size(); ++i) scores.right.push_back(targets[i] != kNoTarget && found[i] == targets[i]);
  return scores;
}

std::vector<double> stepwise_losses(InferenceModel& model, const FrozenBatch& batch, int64_t rows,
                                    const std::function<void(double fraction)>& progress) {
  const int64_t length = batch.length;
  std::vector<double> losses(static_cast<size_t>(batch.sequences * length));
  for (int64_t first = 0; first < batch.sequences; first += rows) {
    const int64_t count = std::min(rows, batch.sequences - first);
    DecodingState state = model.model().begin(model.arena(), model.activations(), count, length);
    for (int64_t t = 0; t < length; ++t) {
      const std::vector<int32_t> targets = column(batch.targets, length, first, count, t);
      const std::vector<double> found = extended_scores(model, state, column(batch.tokens, length, first, count, t), targets, false).losses;
      for (int64_t row = 0; row < count; ++row)
        if (targets[static_cast<size_t>(row)] != kNoTarget)
          losses[static_cast<size_t>((first + row) * length + t)] = found[static_cast<size_t>(row)];
      if (progress) progress(static_cast<double>(first * length + count * (t + 1)) / static_cast<double>(batch.sequences * length));
    }
  }
  return losses;
}

StepwiseEvaluation stepwise_evaluation(LoadedModel& loaded, EvaluationPass& pass, const FrozenBatch& batch, const Evaluation& one_pass,
                                       const EvaluationProgress& progress) {
  if (!pass.decodes(batch.length))
    throw UsageError("--reading stepwise: the model does not decode sequences of " + std::to_string(batch.length) + " tokens");
  if (progress.message) progress.message("reading " + batch.domain + " token by token");
  const std::vector<double> losses = stepwise_losses(*loaded.model, batch, pass.piece_sequences(batch.length), [&](double fraction) {
    if (progress.done) progress.done(fraction, batch.domain + ", token by token");
  });
  StepwiseEvaluation found;
  std::vector<double> prices;
  double sum = 0, targets = 0;
  for (size_t s = 0; s < one_pass.by_sequence.size(); ++s) {
    const auto count = static_cast<double>(one_pass.targets[s]);
    double own = 0;
    for (auto t = static_cast<size_t>(batch.length) * s, end = t + static_cast<size_t>(batch.length); t < end; ++t) own += losses[t];
    sum += own, targets += count;
    found.by_sequence.push_back(own / count);
    prices.push_back(own / count - one_pass.by_sequence[s]);
  }
  found.loss = sum / targets, found.standard_error = standard_error(found.by_sequence, one_pass.targets);
  found.price = found.loss - one_pass.loss, found.price_error = standard_error(prices, one_pass.targets);
  return found;
}

}  // namespace saccade
