#include "models/evaluation/evaluation_pass.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numbers>

#include "kernels/engine/progress.h"
#include "kernels/engine/transfer.h"
#include "kernels/ops/cross_entropy/cross_entropy.h"
#include "kernels/ops/position_sums/position_sums.h"

namespace saccade {

namespace {

constexpr size_t kAhead = 8;  ///< pieces that a GPU is given before the losses of the first are read

/// Whether each target is the likeliest token [targets], which may lie on a GPU.
std::vector<bool> right_targets(std::span<const int32_t> targets, const Tensor& likeliest) {
  std::vector<int32_t> found(targets.size());
  copy_to_host(found.data(), likeliest);
  std::vector<bool> right;
  for (size_t i = 0; i < targets.size(); ++i) right.push_back(targets[i] != kNoTarget && found[i] == targets[i]);
  return right;
}

}  // namespace

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
    begin = bin.end;
    if (all == 0) continue;  // nothing is asked there
    for (int64_t t = bin.begin; t < bin.end; ++t)
      if (targets(t) > 0) bin.loss += by_position[static_cast<size_t>(t)] / (all / targets(t));
    bins.push_back(bin);
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
    const auto first = batch.targets.begin() + s * batch.length;
    if ((counted == 0 && batch.most_answers == 0) ||
        (batch.most_answers == 0 && std::find(first, first + counted, kNoTarget) != first + counted))
      throw DataError("the evaluation batch of " + batch.domain + " has a sequence without targets, or with a gap in them");
    const int64_t answers = batch.length - std::count(first, first + batch.length, kNoTarget);
    if (batch.most_answers > 0 && answers > batch.most_answers)
      throw DataError("the evaluation batch of " + batch.domain + " has a sequence with " + std::to_string(answers) +
                      " answers; expected at most " + std::to_string(batch.most_answers));
  }
}

EvaluationPass::EvaluationPass(const Model& model, Arena& arena, std::function<void(Tape&)> prepare, int64_t piece_tokens)
    : model_(model), arena_(arena), prepare_(std::move(prepare)), piece_tokens_(piece_tokens) {
  if (arena.device().is_cuda()) copies_.emplace(arena.device());
}

int64_t EvaluationPass::piece_sequences(int64_t length) const { return std::max<int64_t>(1, piece_tokens_ / length); }

namespace {

/// Adds up the losses of a batch, and whether its answers are right, piece after piece.
class Sums {
 public:
  explicit Sums(const FrozenBatch& batch) : batch_(batch), at_(static_cast<size_t>(batch.length)) {
    evaluation_.targets_at.assign(static_cast<size_t>(batch.length), 0);
  }

  /// Of sequences first … first + count − 1, which stand behind `before` others in their piece. An empty `likeliest`: text.
  void add(const Tensor& token_losses, const Tensor& likeliest, int64_t before, int64_t first, int64_t count) {
    const int64_t length = batch_.length, size = count * length;
    const double* losses = token_losses.data<double>() + before * length;
    if (likeliest) {
      const std::vector<bool> right = right_targets({batch_.targets.data() + first * length, static_cast<size_t>(size)},
                                                    likeliest.slice(before * length, before * length + size));
      evaluation_.right.insert(evaluation_.right.end(), right.begin(), right.end());
    }
    for (int64_t s = 0; s < count; ++s) {
      const double* row = losses + s * length;
      const int32_t* asked = batch_.targets.data() + (first + s) * length;
      int64_t counted = 0;
      double sum = 0;
      for (int64_t t = 0; t < length; ++t) {
        if (asked[t] == kNoTarget) continue;
        ++counted;
        at_[static_cast<size_t>(t)] += row[t];
        ++evaluation_.targets_at[static_cast<size_t>(t)];
        sum += row[t];
      }
      evaluation_.by_sequence.push_back(sum / static_cast<double>(counted));
      evaluation_.targets.push_back(counted);
      targets_ += static_cast<double>(counted);
    }
  }

  Evaluation finish() {
    std::vector<int64_t>& targets_at = evaluation_.targets_at;
    const auto sequences = static_cast<double>(batch_.sequences);
    if (batch_.most_answers > 0)
      evaluation_.accuracy = static_cast<double>(std::count(evaluation_.right.begin(), evaluation_.right.end(), true)) / targets_;
    while (targets_at.back() == 0) targets_at.pop_back();
    for (size_t t = 0; t < targets_at.size(); ++t) {
      const auto at = static_cast<double>(targets_at[t]);
      evaluation_.by_position.push_back(0);
      if (targets_at[t] == 0) continue;
      evaluation_.by_position.back() = at_[t] / at;
      evaluation_.loss += evaluation_.by_position.back() / (targets_ / at);  // exactly the length where every position counts
    }
    evaluation_.standard_error = standard_error(evaluation_.by_sequence, evaluation_.targets);
    if (batch_.bytes > 0)
      evaluation_.bits_per_byte =
          evaluation_.loss * sequences * (targets_ / sequences) / (std::numbers::ln2 * static_cast<double>(batch_.bytes));
    return std::move(evaluation_);
  }

 private:
  const FrozenBatch& batch_;
  std::vector<double> at_;  ///< of each position, sequence after sequence: the same bits for any pieces
  double targets_ = 0;
  Evaluation evaluation_;
};

/// Sequences first … first + count − 1 of a batch.
struct Part {
  size_t batch;
  int64_t first, count;
};

/// Batches cut into pieces of as many sequences as `most` says of their length. A piece goes on into the next batch where that is of the
/// same shape, so that few sizes occur: on a GPU each is captured by itself, and small ones keep it less busy.
std::vector<std::vector<Part>> pieces_of(std::span<const FrozenBatch> batches, const std::function<int64_t(int64_t length)>& most) {
  std::vector<std::vector<Part>> pieces;
  int64_t room = 0;
  for (size_t b = 0; b < batches.size(); ++b) {
    const FrozenBatch& batch = batches[b];
    if (b > 0 && (batch.length != batches[b - 1].length || batch.most_answers != batches[b - 1].most_answers)) room = 0;
    for (int64_t first = 0; first < batch.sequences;) {
      if (room == 0) {
        pieces.emplace_back();
        room = most(batch.length);
      }
      const int64_t count = std::min(room, batch.sequences - first);
      pieces.back().push_back({b, first, count});
      first += count, room -= count;
    }
  }
  return pieces;
}

/// Tokens and targets of a piece, one part after the other.
class Together {
 public:
  Together(std::span<const FrozenBatch> batches, const std::vector<Part>& parts) {
    for (const Part& part : parts) {
      const FrozenBatch& batch = batches[part.batch];
      const auto begin = part.first * batch.length, end = begin + part.count * batch.length;
      tokens_.insert(tokens_.end(), batch.tokens.begin() + begin, batch.tokens.begin() + end);
      targets_.insert(targets_.end(), batch.targets.begin() + begin, batch.targets.begin() + end);
      sequences_ += part.count;
    }
  }
  const int32_t* tokens() const { return tokens_.data(); }
  const int32_t* targets() const { return targets_.data(); }
  int64_t sequences() const { return sequences_; }

 private:
  std::vector<int32_t> tokens_, targets_;
  int64_t sequences_ = 0;
};

}  // namespace

Evaluation EvaluationPass::evaluate(const FrozenBatch& batch, const std::function<void(int64_t)>& progress) {
  return std::move(evaluate(std::span(&batch, 1), progress).front());
}

std::vector<Evaluation> EvaluationPass::evaluate(std::span<const FrozenBatch> batches, const std::function<void(int64_t)>& progress) {
  struct Begun {
    std::vector<Part> parts;
    Told told;
  };
  for (const FrozenBatch& batch : batches) check_batch(batch, model_.output_weight().dim(0));
  std::vector<Sums> sums(batches.begin(), batches.end());
  std::deque<Begun> begun;
  int64_t done = 0;
  const auto finish_first = [&] {
    const auto& [parts, told] = begun.front();
    told.computed.wait();
    int64_t before = 0;  // sequences of the piece
    for (const Part& part : parts) {
      sums[part.batch].add(told.losses, told.likeliest, before, part.first, part.count);
      before += part.count;
    }
    done += before;
    begun.pop_front();
    raise_progress();  // a replayed piece runs no op
    if (progress) progress(done);
  };
  for (std::vector<Part>& parts : pieces_of(batches, [&](int64_t length) { return piece_sequences(length); })) {
    const FrozenBatch& batch = batches[parts.front().batch];
    const Together piece(batches, parts);
    begun.push_back({std::move(parts), begin_piece(piece.tokens(), piece.targets(), piece.sequences(), batch.length, batch.most_answers > 0,
                                                   piece.sequences() * batch.most_answers)});
    if (begun.size() > (copies_ ? kAhead : 0)) finish_first();
  }
  while (!begun.empty()) finish_first();
  std::vector<Evaluation> evaluations;
  for (Sums& s : sums) evaluations.push_back(s.finish());
  return evaluations;
}

EvaluationPass::Told EvaluationPass::room_for(int64_t positions, bool likeliest) {
  Told told{arena_.allocate({positions}, DType::f64), {}, {}};
  if (likeliest) told.likeliest = arena_.allocate({positions}, DType::i32);
  return told;
}

void EvaluationPass::forward(Tape& tape, const Tensor& tokens, const Tensor& targets, const Told& told, int64_t most_targets) const {
  prepare_(tape);
  Tensor losses;
  model_.loss(tape, tokens, targets, nullptr, &losses, {.most_targets = most_targets, .largest = told.likeliest});
  add_position_sums(tape, losses, told.losses);  // as one long sequence: in double, where a replay leaves them too
}

EvaluationPass::Told EvaluationPass::begin_piece(const int32_t* tokens, const int32_t* targets, int64_t sequences, int64_t length,
                                                 bool likeliest, int64_t most_targets) {
  cuda::CapturedGraph& pass = graphs_[{sequences, length, likeliest, most_targets, arena_.used()}];
  const Tensor x = arena_.allocate({sequences, length}, DType::i32), y = arena_.allocate({sequences, length}, DType::i32);
  const Told told = room_for(sequences * length, likeliest);
  copy_from_host(x, tokens);
  copy_from_host(y, targets);
  fill_zero(told.losses);
  pass(arena_.device(), [&] {
    Tape tape(arena_, false);
    forward(tape, x, y, told, most_targets);
  });
  if (!copies_) return told;
  const Tensor losses = copies_->begin(told.losses), found = likeliest ? copies_->begin(told.likeliest) : Tensor();
  return {losses, found, copies_->mark()};
}

TokenScores EvaluationPass::token_scores(const int32_t* tokens, const int32_t* targets, int64_t sequences, int64_t length, bool right) {
  const Told told = begin_piece(tokens, targets, sequences, length, right, 0);
  told.computed.wait();
  return {to_doubles(told.losses),
          right ? right_targets({targets, static_cast<size_t>(sequences * length)}, told.likeliest) : std::vector<bool>()};
}

TokenScores EvaluationPass::continuation_scores(const Continuations& batch, bool right) {
  const auto rows = static_cast<int64_t>(batch.context_of.size());
  const int64_t count = static_cast<int64_t>(batch.contexts.size()) / batch.context_length, capacity = batch.context_length + batch.length;
  Tape tape(arena_, false);
  prepare_(tape);
  const DType dtype = tape.activation_dtype(model_.output_weight());
  DecodingState state = model_.begin(arena_, dtype, rows, capacity);
  {
    DecodingState contexts = model_.begin(arena_, dtype, count, capacity);
    contexts.last_only = true;
    const Tensor x = arena_.allocate({count, batch.context_length}, DType::i32);
    copy_from_host(x, batch.contexts.data());
    model_.extend(tape, x, contexts);
    const Tensor index = arena_.allocate({rows}, DType::i32);
    copy_from_host(index, batch.context_of.data());
    state.copy(tape, contexts, index);
  }
  const Tensor x = arena_.allocate({rows, batch.length}, DType::i32), y = arena_.allocate({rows, batch.length}, DType::i32);
  copy_from_host(x, batch.tokens.data());
  copy_from_host(y, batch.targets.data());
  const Tensor likeliest = right ? arena_.allocate({rows * batch.length}, DType::i32) : Tensor(), hidden = model_.extend(tape, x, state);
  const CrossEntropy loss = linear_cross_entropy(tape, hidden, model_.output_weight(), y, {.largest = likeliest});
  return {to_doubles(loss.tokens), right ? right_targets(batch.targets, likeliest) : std::vector<bool>()};
}

bool EvaluationPass::decodes(int64_t length) const try {
  Arena plan(Device::plan(arena_.device().engine));
  model_.begin(plan, DType::f32, 1, length);
  return true;
} catch (const UsageError&) {
  return false;
}

EvaluationPass::Planned EvaluationPass::plan(int64_t length, int64_t most_answers) {
  Planned planned{piece_sequences(length), {}, {}};
  const Tensor x = arena_.allocate({planned.sequences, length}, DType::i32), y = arena_.allocate({planned.sequences, length}, DType::i32);
  const Told told = room_for(planned.sequences * length, most_answers > 0);
  Tape tape(arena_, false);
  forward(tape, x, y, told, planned.sequences * most_answers);
  planned.cost = tape.cost(), planned.refusal = tape.refusal();
  return planned;
}

}  // namespace saccade
