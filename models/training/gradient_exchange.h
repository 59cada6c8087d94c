#pragma once
#include <memory>
#include <vector>

#include "kernels/ops/adamw/adamw.h"
#include "models/optimizers/registry.h"
#include "models/training/ranks.h"
#include "models/training/shards.h"
#include "models/training/tree_sum.h"

namespace saccade {

/// Which rank takes which micro-batches of a step. They are cut into blocks of 2^k, the most that divides each rank's number of them, and
/// blocks go round: one to every rank, then the next one. So what a rank sums is a branch of the tree over all of them (TreeSum).
struct MicroBatchOrder {
  int64_t count;  ///< of the step, a multiple of `ranks`
  int64_t ranks;

  int64_t each() const { return count / ranks; }
  int64_t block() const;
  /// Number in the step of a rank's micro-batch i.
  int64_t number(int64_t rank, int64_t i) const { return (i / block() * ranks + rank) * block() + i % block(); }
};

/// From the gradients of micro-batches to the sums that this rank's optimizer reads, and from its weights to those of all ranks.
/// Gradients of micro-batches are summed by a tree over their number in the step (TreeSum): each rank its blocks, then shards go to the
/// ranks whose optimizers have them (all_to_all) and are summed there, on by the same tree. The sums, and what follows from them, are the
/// same bytes for any number of ranks. With one rank and one micro-batch nothing is added.
class GradientExchange {
 public:
  /// `slots`: of all parameters.
  GradientExchange(const Ranks& ranks, const TrainingConfig& training, const Model& model, const std::vector<AdamWSlot>& slots,
                   Arena& arena);

  const std::vector<std::vector<Piece>>& shards() const { return shards_; }
  const std::vector<Piece>& pieces() const { return shards_[static_cast<size_t>(ranks_.rank)]; }
  /// What this rank's optimizer updates.
  const std::vector<AdamWSlot>& slots() const { return mine_; }

  /// The gradients of this rank's micro-batch i, of `count` in the step, stand in the slots, and its loss [1]. After the last one the sums
  /// stand in slots().
  void add(Tape& tape, const Tensor& loss, int64_t i, int64_t count);
  /// As gradient_norm over all slots. norm f64 [1]
  void norm(Tape& tape, const Tensor& norm);
  /// sum f64 [1] = share · losses, added in the order of the micro-batches. With several ranks only.
  void sum_losses(Tape& tape, const Tensor& sum, double share, int64_t count);
  /// Gives every rank the weights that the others' optimizers have changed; with several ranks, as what follows.
  void share_weights() const;
  void share_gradients() const;         ///< the sums of all shards, after the last `add`
  void share_weights_of_first() const;  ///< all weights as rank 0 has them
  /// Of memory for sums: those that stand and what other ranks send.
  int64_t bytes() const;

 private:
  void exchange(Tape& tape, int64_t round, const MicroBatchOrder& order);
  void all_gather(const Communicator::Parts& parts) const;
  Tensor losses_of(int64_t rank, int64_t first, int64_t end) const;

  Ranks ranks_;
  std::vector<std::vector<Piece>> shards_;
  std::vector<AdamWSlot> mine_;
  std::vector<Tensor> gradients_, weights_;  ///< whole, of all parameters
  Communicator::Parts values_, parts_;       ///< weights and gradients by the rank that has them in its shard
  Communicator::Parts received_;             ///< this rank's shard from every other rank
  std::vector<Tensor> sum_;                  ///< where that of the shard goes
  std::unique_ptr<TreeSum> blocks_, shard_;
  Communicator::Parts squares_;  ///< f64, by rank, of one tensor
  Tensor all_squares_;
  Tensor losses_;  ///< [ranks, most]
};

}  // namespace saccade
