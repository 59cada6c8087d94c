#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/engine/captured_graph.h"
#include "kernels/engine/staging.h"
#include "kernels/ops/adamw/adamw.h"
#include "models/config/config.h"
#include "models/model.h"
#include "models/optimizers/registry.h"
#include "models/training/gradient_exchange.h"

namespace saccade {

/// Types that a run computes in. Mixed precision (CUDA): bf16 activations and products, everything else f32.
struct Precision {
  DType parameters = DType::f32;   ///< with their gradients and moments
  DType activations = DType::f32;  ///< and the copies of matrices that products read
};

/// "auto", "f32", "f64" (CPU), "bf16" (CUDA); auto: f32 on the CPU, bf16 on CUDA. Throws UsageError.
Precision parse_precision(const std::string& precision, Device device);
/// Whether an engine computes in a precision; in "auto" every engine does.
bool computes_in(const std::string& precision, Engine engine);

/// A model with everything that one optimizer step touches, on any device: the trainer runs it, the plan runs it on
/// `plan`, so what a plan says comes from the code that will train. On a GPU nothing waits until `measures` does, and from
/// the second step on the work is replayed (cuda::CapturedGraph).
class TrainingStep {
 public:
  /// Of one of several ranks, which all do the same calls: forward_backward is then called for its own micro-batches alone
  /// (MicroBatchOrder), and the optimizer is that of its shard. Throws UsageError for a precision the device does not compute in, and where
  /// the micro-batches cannot be divided among the ranks.
  TrainingStep(const RunConfig& config, int64_t vocabulary, Device device, const Ranks& ranks = {});

  int64_t sequences() const { return tokens_.dim(0); }  ///< of a micro-batch
  int64_t length() const { return tokens_.dim(1); }
  /// Where the next micro-batch goes, [sequences, length]. Unless they are asked for, the last one is used again.
  std::span<int32_t> tokens() { return span_of(next_tokens_); }
  std::span<int32_t> targets() { return filled_targets_ = span_of(next_targets_); }
  /// Targets other than kNoTarget that it may have: as many as rows of text, those that examples of its task can have. Logits are made of
  /// so many rows.
  int64_t most_targets() const { return most_targets_; }

  /// Starts carrying the micro-batch that was filled in to a GPU while it works on the one before.
  void send_ahead();

  /// Of a step of so many micro-batches on all ranks (0: gradient_accumulation): gradients start anew. The loss is the mean over
  /// `targets`, those of all its micro-batches that count; 0: all do.
  void begin(int64_t micro_batches = 0, int64_t targets = 0);
  /// One micro-batch; with the last one, what the ranks have is summed. Throws DataError where it has more than most_targets.
  void forward_backward();
  void gradient_norm();                             ///< of the mean gradient over the micro-batches so far
  void update(double learning_rate, int64_t step);  ///< clip and optimizer, unless loss or norm is not finite; `step` counts from 1

  /// Waits for the device. Both 0 on `plan`.
  struct Measures {
    double loss = 0;  ///< mean over the targets since `begin`, in nats
    double gradient_norm = 0;
  };
  Measures measures() const;

  /// Makes a tape compute as this one does (mixed precision).
  void prepare(Tape& tape) const;
  /// After values of parameters were written from outside.
  void refresh_copies();

  Tape& tape() { return tape_; }
  Arena& arena() { return arena_; }
  const Model& model() const { return *model_; }
  const std::vector<AdamWSlot>& slots() const { return slots_; }  ///< in the order of model().parameters(), without moments
  const Optimizer& optimizer() const { return *optimizer_; }      ///< of this rank's shard
  const GradientExchange& exchange() const { return *exchange_; }
  const Ranks& ranks() const { return ranks_; }
  const TrainingConfig& training() const { return training_; }
  Precision precision() const { return precision_; }
  int64_t steps() const { return steps_; }  ///< taken with it so far

 private:
  std::span<int32_t> span_of(Staging& staging);
  void check_targets();
  void run_forward_backward();
  double loss_share() const;

  const TrainingConfig training_;
  const Ranks ranks_;
  Precision precision_;
  Arena arena_;
  Tape tape_;
  std::unique_ptr<Model> model_;
  std::vector<AdamWSlot> slots_;
  std::unique_ptr<GradientExchange> exchange_;
  std::unique_ptr<Optimizer> optimizer_;
  Tensor tokens_, targets_, rates_;
  Tensor measures_;      ///< f64 [2]: loss, norm
  Tensor target_share_;  ///< [1] rows of a micro-batch over the step's targets; empty where all rows have one
  std::optional<Staging> next_target_share_;
  Staging next_tokens_, next_targets_, next_rates_;
  int64_t most_targets_;
  std::span<int32_t> filled_targets_;  ///< those that wait for forward_backward
  Tensor micro_batch_loss_;            ///< [1]; with several ranks
  int64_t done_ = 0;                   ///< micro-batches of the step on this rank
  int64_t micro_batches_ = 1;          ///< of the step on all ranks
  int64_t steps_ = 0;
  struct Passes {
    cuda::CapturedGraph first, further;
  };
  std::map<int64_t, Passes> passes_;  ///< by the number of micro-batches in a step, which decides the share of each
  cuda::CapturedGraph norm_pass_, update_pass_, copies_pass_;
};

/// Leaves the most_targets of a micro-batch, evenly spread, and makes the others kNoTarget: for steps that are measured without data.
void thin_out(std::span<int32_t> targets, int64_t most_targets);

/// Sets the CPU threads a config asks for, at most one a core; 0: as many as the program started with, divided among so many processes.
void use_threads(int64_t threads, int processes = 1);
/// Says in one line that there are fewer cores than threads asked for; empty when there are not.
std::string too_many_threads(int64_t threads);

}  // namespace saccade
