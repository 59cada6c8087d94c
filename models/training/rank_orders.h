#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "models/training/training_step.h"

namespace saccade {

/// Rank 0 of a run reads the data, evaluates and writes; what the other ranks have to do with it, it orders. An order is a line that rank 0
/// sends to all, then what goes with it. So the others need no corpus, no tokenizer and no file of the run, and do what the run does
/// whatever that is: train, go back to a checkpoint, branch off.
namespace rank_orders {

/// What a step of all ranks does.
struct Step {
  int64_t number = 0;                      ///< from 1
  int64_t micro_batches = 1, targets = 0;  ///< TrainingStep::begin
  double learning_rate = 0;
};
/// Micro-batches of a step on the CPU, i32 [count, tokens of one] each.
struct Batch {
  Tensor tokens, targets;
};

/// The ranks make the config's training step, and let go of the one before.
void begin(Communicator& ranks, const RunConfig& config, int64_t vocabulary);
/// A step of all ranks, that of rank 0 included, from the micro-batches of the whole step. True when a rank was asked to stop.
bool step(TrainingStep& work, const Step& order, const Batch& batch);
/// gather_optimizer_state and scatter_optimizer_state; with the latter rank 0's weights go to all.
void gather_state(TrainingStep& work, const std::vector<TensorGroup>& whole);
void scatter_state(TrainingStep& work, const std::vector<TensorGroup>& whole);
/// GradientExchange::share_gradients
void share_gradients(TrainingStep& work);
/// The run has ended: the others return.
void end(Communicator& ranks);

/// What a rank other than 0 does: what it is ordered, until `end`. `stop` is what this process was asked for; it is passed on at the next
/// step. Throws as making a plan, taking a step and Communicator do.
void follow(const Ranks& ranks, const std::atomic<bool>& stop);

}  // namespace rank_orders
}  // namespace saccade
