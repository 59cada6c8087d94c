#include "models/evaluation/evaluation_pass.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/engine/transfer.h"
#include "kernels/ops/position_sums/position_sums.h"

namespace saccade {

double standard_error(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  if (values.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / count;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (count * (count - 1)));
}

std::vector<PositionLoss> loss_by_position(const std::vector<double>& by_position) {
  std::vector<PositionLoss> bins;
  const auto length = static_cast<int64_t>(by_position.size());
  for (int64_t begin = 0; begin < length;) {
    PositionLoss bin{begin, std::min(std::max<int64_t>(1, 2 * begin), length), 0};
    for (int64_t t = begin; t < bin.end; ++t) bin.loss += by_position[static_cast<size_t>(t)] / static_cast<double>(bin.end - begin);
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
  for (const std::vector<int32_t>* numbers : {&batch.tokens, &batch.targets})
    for (const int32_t token : *numbers)
      if (token < 0 || token >= vocabulary)
        throw DataError("the evaluation batch of " + batch.domain + " holds token " + std::to_string(token) + "; expected 0 to " +
                        std::to_string(vocabulary - 1));
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
  for (int64_t first = 0; first < batch.sequences; first += most) {
    const int64_t count = std::min(most, batch.sequences - first);
    const std::vector<double> piece = token_losses(batch.tokens.data() + first * length, batch.targets.data() + first * length, count, length);
    for (auto row = piece.begin(); row != piece.end(); row += length) {
      double sum = 0;
      for (int64_t t = 0; t < length; ++t) {
        sums[static_cast<size_t>(t)] += row[t];
        sum += row[t];
      }
      evaluation.by_sequence.push_back(sum / static_cast<double>(length));
    }
    if (progress) progress(first + count);
  }
  for (const double sum : sums) {
    evaluation.by_position.push_back(sum / sequences);
    evaluation.loss += evaluation.by_position.back() / static_cast<double>(length);
  }
  evaluation.standard_error = standard_error(evaluation.by_sequence);
  if (batch.bytes > 0)
    evaluation.bits_per_byte =
        evaluation.loss * sequences * static_cast<double>(length) / (std::numbers::ln2 * static_cast<double>(batch.bytes));
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
