#include "models/evaluation/evaluation_pass.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/engine/transfer.h"
#include "kernels/ops/position_sums/position_sums.h"

namespace saccade {

double standard_error(std::span<const double> values, std::span<const int64_t> weights) {
  const auto count = static_cast<double>(values.size());
  if (values.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  double all = 0;
  for (size_t i = 0; i < values.size(); ++i) all += weights.empty() ? 1 : static_cast<double>(weights[i]);
  // Relative to the mean weight, 1 where all are equal.
  const auto weight = [&](size_t i) { return weights.empty() ? 1 : static_cast<double>(weights[i]) / (all / count); };
  double mean = 0, squares = 0;
  for (size_t i = 0; i < values.size(); ++i) mean += weight(i) * values[i] / count;
  for (size_t i = 0; i < values.size(); ++i) squares += weight(i) * weight(i) * (values[i] - mean) * (values[i] - mean);
  return std::sqrt(squares / (count * (count - 1)));
}

std::vector<PositionLoss> loss_by_position(const std::vector<double>& by_position, const std::vector<int64_t>& targets_at) {
  std::vector<PositionLoss> bins;
  const auto length = static_cast<int64_t>(by_position.size());
  const auto targets = [&](int64_t t) { return targets_at.empty() ? 1.0 : static_cast<double>(targets_at[static_cast<size_t>(t)]); };
  for (int64_t begin = 0; begin < length;) {
    PositionLoss bin{begin, std::min(std::max<int64_t>(1, 2 * begin), length), 0};
    double all = 0;
    for (int64_t t = begin; t < bin.end; ++t) all += targets(t);
    for (int64_t t = begin; t < bin.end; ++t) bin.loss += by_position[static_cast<size_t>(t)] / (all / targets(t));
    bins.push_back(bin);
    begin = bin.end;
  }
  return bins;
}

void check_batch(const FrozenBatch& batch, int64_t vocabulary) {
  const auto size = static_cast<size_t>(batch.sequences * batch.length);
  if (size == 0 || batch.tokens.size() != size || batch.targets.size() != size)
    throw DataError("the evaluation batch of " + batch.domain + " has " + std::to_string(batch.tokens.size()) + " tokens and " +
                    std::to_string(batch.targets.size()) + " targets; expected " + std::to_string(batch.sequences) + " sequences of " +
                    std::to_string(batch.length));
  const auto check = [&](const std::vector<int32_t>& numbers, int32_t least) {
    for (const int32_t token : numbers)
      if (token < least || token >= vocabulary)
        throw DataError("the evaluation batch of " + batch.domain + " holds token " + std::to_string(token) + "; expected 0 to " +
                        std::to_string(vocabulary - 1));
  };
  check(batch.tokens, 0);
  check(batch.targets, kNoTarget);
  for (int64_t s = 0; s < batch.sequences; ++s) {
    const int64_t counted = batch.targets_of(s);
    const auto rest = batch.targets.begin() + s * batch.length + counted;
    if (counted == 0 || std::any_of(rest, rest + (batch.length - counted), [](int32_t t) { return t != kNoTarget; }))
      throw DataError("the evaluation batch of " + batch.domain + " has a sequence without targets, or with a gap in them");
  }
}

EvaluationPass::EvaluationPass(const Model& model, Arena& arena, std::function<void(Tape&)> prepare, int64_t piece_tokens)
    : model_(model), arena_(arena), prepare_(std::move(prepare)), piece_tokens_(piece_tokens) {}

int64_t EvaluationPass::piece_sequences(int64_t length) const { return std::max<int64_t>(1, piece_tokens_ / length); }

Evaluation EvaluationPass::evaluate(const FrozenBatch& batch, const std::function<void(int64_t)>& progress) {
  check_batch(batch, model_.output_weight().dim(0));
  const int64_t length = batch.length, most = piece_sequences(length);
  const auto sequences = static_cast<double>(batch.sequences);
  std::vector<double> sums(static_cast<size_t>(length));  // of each position, sequence after sequence: the same bits for any pieces
  Evaluation evaluation;
  std::vector<int64_t>& targets_at = evaluation.targets_at;
  targets_at.assign(static_cast<size_t>(length), 0);
  double targets = 0;
  for (int64_t first = 0; first < batch.sequences; first += most) {
    const int64_t count = std::min(most, batch.sequences - first);
    const std::vector<double> piece =
        token_losses(batch.tokens.data() + first * length, batch.targets.data() + first * length, count, length);
    for (int64_t s = 0; s < count; ++s) {
      const double* row = piece.data() + s * length;
      const int64_t counted = batch.targets_of(first + s);
      double sum = 0;
      for (int64_t t = 0; t < counted; ++t) {
        sums[static_cast<size_t>(t)] += row[t];
        ++targets_at[static_cast<size_t>(t)];
        sum += row[t];
      }
      evaluation.by_sequence.push_back(sum / static_cast<double>(counted));
      evaluation.targets.push_back(counted);
      targets += static_cast<double>(counted);
    }
    if (progress) progress(first + count);
  }
  while (targets_at.back() == 0) targets_at.pop_back();
  for (size_t t = 0; t < targets_at.size(); ++t) {
    const auto at = static_cast<double>(targets_at[t]);
    evaluation.by_position.push_back(sums[t] / at);
    evaluation.loss += evaluation.by_position.back() / (targets / at);  // exactly the length where every position counts
  }
  evaluation.standard_error = standard_error(evaluation.by_sequence, evaluation.targets);
  if (batch.bytes > 0)
    evaluation.bits_per_byte = evaluation.loss * sequences * (targets / sequences) / (std::numbers::ln2 * static_cast<double>(batch.bytes));
  return evaluation;
}

void EvaluationPass::forward(Tape& tape, const Tensor& tokens, const Tensor& targets, const Tensor& losses) const {
  prepare_(tape);
  Tensor token_losses;
  model_.loss(tape, tokens, targets, nullptr, &token_losses);
  add_position_sums(tape, token_losses, losses);  // as one long sequence: in double, where a replay leaves them too
}

std::vector<double> EvaluationPass::token_losses(const int32_t* tokens, const int32_t* targets, int64_t sequences, int64_t length) {
  cuda::CapturedGraph& pass = graphs_[{sequences, length, arena_.used()}];
  const Tensor x = arena_.allocate({sequences, length}, DType::i32), y = arena_.allocate({sequences, length}, DType::i32);
  const Tensor losses = arena_.allocate({sequences * length}, DType::f64);
  copy_from_host(x, tokens);
  copy_from_host(y, targets);
  fill_zero(losses);
  pass(arena_.device(), [&] {
    Tape tape(arena_, false);
    forward(tape, x, y, losses);
  });
  return to_doubles(losses);
}

EvaluationPass::Planned EvaluationPass::plan(int64_t length) {
  const int64_t sequences = piece_sequences(length);
  const Tensor x = arena_.allocate({sequences, length}, DType::i32), y = arena_.allocate({sequences, length}, DType::i32);
  const Tensor losses = arena_.allocate({sequences * length}, DType::f64);
  Tape tape(arena_, false);
  forward(tape, x, y, losses);
  return {sequences, tape.cost(), tape.refusal()};
}

}  // namespace saccade
