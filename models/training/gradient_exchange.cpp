#include "models/training/gradient_exchange.h"

#include <algorithm>
#include <bit>

#include "kernels/engine/progress.h"
#include "kernels/engine/transfer.h"
#include "kernels/ops/step_measures/step_measures.h"
#include "kernels/ops/tensor_sums/tensor_sums.h"

namespace saccade {
namespace {

int64_t lowest_bit(int64_t n) { return n & -n; }

/// Most shards of one step that are summed; steps of a batch that grows may be cut otherwise than the last ones.
int64_t most_leaves(const TrainingConfig& training, int64_t ranks) {
  const int64_t count = training.gradient_accumulation;
  return training.batch_warmup_steps > 0 ? count : count / MicroBatchOrder{count, ranks}.block();
}

}  // namespace

int64_t MicroBatchOrder::block() const { return ranks == 1 ? count : lowest_bit(each()); }

GradientExchange::GradientExchange(const Ranks& ranks, const TrainingConfig& training, const Model& model,
                                   const std::vector<AdamWSlot>& slots, Arena& arena)
    : ranks_(ranks) {
  const std::vector<Parameter>& parameters = model.parameters();
  const OptimizerEntry& entry = optimizer(training.optimizer);
  shards_ = cut_into_shards(
      parameters, [&](size_t i) { return ranks.count == 1 || (entry.whole && entry.whole(training.optimizer_settings, model, i)); },
      ranks.count);
  const auto n = static_cast<size_t>(ranks.count), me = static_cast<size_t>(ranks.rank);
  values_.resize(n), parts_.resize(n), received_.resize(n), squares_.resize(n);
  int64_t squares = 0;
  std::vector<int64_t> ends;
  for (size_t r = 0; r < n; ++r) {
    std::vector<AdamWSlot> shard;
    for (const Piece& piece : shards_[r]) {
      AdamWSlot slot = slots[piece.parameter];
      slot.value = part_of(slot.value, piece), slot.grad = part_of(slot.grad, piece);
      if (slot.compute_copy) slot.compute_copy = part_of(slot.compute_copy, piece);
      values_[r].push_back(slot.value), parts_[r].push_back(slot.grad);
      shard.push_back(slot);
    }
    ends.push_back(squares += norm_pieces(arena.device(), shard));
    if (r == me) mine_ = std::move(shard);
  }
  sum_ = parts_[me];
  for (const AdamWSlot& slot : slots) gradients_.push_back(slot.grad), weights_.push_back(slot.value);
  const int64_t count = training.gradient_accumulation, each = count / ranks.count;
  const int64_t block = ranks.count == 1 ? count : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(each)));
  blocks_ = std::make_unique<TreeSum>(arena, gradients_, std::max<int64_t>(1, block));
  if (ranks.count == 1) return;
  for (size_t r = 0; r < n; ++r)
    for (const Tensor& x : sum_)
      if (r != me) received_[r].push_back(arena.allocate(x.shape(), x.dtype()));
  shard_ = std::make_unique<TreeSum>(arena, sum_, most_leaves(training, ranks.count));
  all_squares_ = arena.allocate({squares}, DType::f64);
  for (size_t r = 0; r < n; ++r) {
    const int64_t begin = r == 0 ? 0 : ends[r - 1];
    if (ends[r] > begin) squares_[r].push_back(all_squares_.slice(begin, ends[r]));
  }
  losses_ = arena.allocate({ranks.count, std::max<int64_t>(1, each)}, parameters.front().value.dtype());
}

Tensor GradientExchange::losses_of(int64_t rank, int64_t first, int64_t end) const {
  return losses_.slice(rank, rank + 1).reshape({losses_.dim(1)}).slice(first, end);
}

void GradientExchange::add(Tape& tape, const Tensor& loss, int64_t i, int64_t count) {
  const MicroBatchOrder order{count, ranks_.count};
  if (order.block() > 1) blocks_->add(tape, gradients_, i % order.block(), order.block());
  if (ranks_.count == 1) return;
  convert(losses_of(ranks_.rank, i, i + 1), loss);
  if ((i + 1) % order.block() == 0) exchange(tape, i / order.block(), order);
}

void GradientExchange::exchange(Tape& tape, int64_t round, const MicroBatchOrder& order) {
  come_to_meeting();
  if (ranks_.communicator) ranks_.communicator->all_to_all(tape.device(), parts_, received_);
  const int64_t leaves = order.count / order.block();
  for (int64_t r = 0; r < ranks_.count; ++r) {
    const std::vector<Tensor>& leaf = r == ranks_.rank ? sum_ : received_[static_cast<size_t>(r)];
    shard_->add(tape, leaf, round * ranks_.count + r, leaves);
  }
  const bool done = (round + 1) * ranks_.count == leaves;
  if (done && ranks_.rank + 1 != ranks_.count) copy_all(tape, sum_, received_.back());
}

void GradientExchange::norm(Tape& tape, const Tensor& norm) {
  if (ranks_.count == 1) return gradient_norm(tape, mine_, norm);
  const std::vector<Tensor>& own = squares_[static_cast<size_t>(ranks_.rank)];
  if (!own.empty()) gradient_squares(tape, mine_, own.front());
  come_to_meeting();
  if (ranks_.communicator) ranks_.communicator->all_gather(tape.device(), squares_);
  norm_of_squares(tape, all_squares_, norm);
}

void GradientExchange::sum_losses(Tape& tape, const Tensor& sum, double share, int64_t count) {
  const MicroBatchOrder order{count, ranks_.count};
  Communicator::Parts parts;
  for (int64_t r = 0; r < ranks_.count; ++r) parts.push_back({losses_of(r, 0, order.each())});
  come_to_meeting();
  if (ranks_.communicator) ranks_.communicator->all_gather(tape.device(), parts);
  std::vector<Tensor> losses(static_cast<size_t>(count));
  for (int64_t r = 0; r < ranks_.count; ++r)
    for (int64_t i = 0; i < order.each(); ++i) losses[static_cast<size_t>(order.number(r, i))] = losses_of(r, i, i + 1);
  for (size_t i = 0; i < losses.size(); ++i) add_loss(tape, sum, losses[i], share, i == 0);
}

void GradientExchange::share_weights() const { all_gather(values_); }

void GradientExchange::share_gradients() const { all_gather(parts_); }

void GradientExchange::share_weights_of_first() const {
  Communicator::Parts parts(static_cast<size_t>(ranks_.count));
  parts.front() = weights_;
  all_gather(parts);
}

void GradientExchange::all_gather(const Communicator::Parts& parts) const {
  come_to_meeting();
  if (ranks_.communicator) ranks_.communicator->all_gather(losses_.device(), parts);
}

int64_t GradientExchange::bytes() const {
  int64_t bytes = blocks_->bytes() + (shard_ ? shard_->bytes() : 0);
  for (const std::vector<Tensor>& tensors : received_)
    for (const Tensor& x : tensors) bytes += x.bytes();
  return bytes;
}

}  // namespace saccade
