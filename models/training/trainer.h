#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/config/config.h"
#include "models/corpus/corpus.h"
#include "models/evaluation/evaluation_pass.h"
#include "models/model.h"
#include "models/optimizers/registry.h"
#include "models/probe.h"
#include "models/training/ranks.h"

namespace saccade {

struct Plan;

/// What one optimizer step reports. Losses in nats per token.
struct StepRecord {
  int64_t step = 0;    ///< steps done, this one included
  int64_t tokens = 0;  ///< trained on so far; padding is none
  double flops = 0;    ///< spent on training so far
  double seconds = 0;  ///< of training so far, evaluation apart; continues over a resume
  double loss = 0, learning_rate = 0, gradient_norm = 0, tokens_per_second = 0;
};

/// The complete state between two steps: with it a run goes on as if never interrupted.
struct TrainingState {
  StepRecord record;                   ///< of the last step
  uint64_t data_position = 0;          ///< sequences handed out
  std::vector<NamedTensor> weights;    ///< on the CPU; they share the memory of a trainer there
  std::vector<TensorGroup> optimizer;  ///< Optimizer::state, likewise

  /// The optimizer's tensors of one meaning. Throws std::logic_error when there are none.
  TensorGroup& group(const std::string& name);
};

/// What a step trained on, and the data position where it begins.
struct TrainedBatch {
  uint64_t data_position = 0;
  FrozenBatch batch;
};

/// Learning rate of step s (1-based): linear warm-up, then the schedule between the peak and min_lr_ratio · peak (a constant one stays).
double scheduled_learning_rate(const TrainingConfig& config, int64_t step);

/// One model in training on one device, or on that of rank 0 of several: the other ranks then follow (models/training/rank_orders.h), and
/// `step`, `state`, `copied_state`, `restore` and `gradients` are done by all of them. What it gives is the same for any number of ranks.
class Trainer {
 public:
  /// `data` delivers the training sequences, `plan` is the config's for these ranks. Throws UsageError, DeviceError.
  Trainer(const RunConfig& config, const Plan& plan, std::unique_ptr<BatchSource> data, const Ranks& ranks = {});
  /// Makes the plan itself.
  Trainer(const RunConfig& config, int64_t vocabulary, std::unique_ptr<BatchSource> data);
  ~Trainer();

  /// One optimizer step. A non-finite loss or gradient norm is reported in the record and the weights are left untouched.
  StepRecord step();
  bool finished() const;
  const StepRecord& record() const;  ///< of the last step
  bool stop_asked() const;           ///< whether another rank's process was asked to stop

  const Model& model() const;
  const RunConfig& config() const;
  const BatchSource& data() const;
  uint64_t data_position() const;  ///< sequences trained on
  Device device() const;
  DType dtype() const;            ///< of the parameters
  std::string precision() const;  ///< what activations and products are in: "f32", "bf16" …
  Arena& arena();
  double flops_per_step() const;

  /// In the trainer's memory on the CPU where it has one rank, else a copy on the CPU.
  TrainingState state();
  /// A copy in any case, which stays as it is while training goes on.
  TrainingState copied_state();
  /// On a GPU, begins to make the memory that copied_state and probe_later copy to, which is then kept for later ones. Without it they make
  /// it, which takes several times as long as to copy.
  void prepare_copies();
  int64_t state_bytes() const;  ///< of its tensors
  /// Copies values from `restored` (on the CPU; same names and shapes; throws DataError otherwise) and continues behind it.
  void restore(const TrainingState& restored);
  /// Goes on by the steps and learning rates of a config that is the same in all else.
  void follow(const TrainingConfig& training);

  /// Gradients of the last step before clipping, where and as `state` has the weights.
  std::vector<NamedTensor> gradients();
  /// What the last step trained on, read once more.
  TrainedBatch last_batch();
  /// Steps whose batch would begin at one of these data positions take the one behind it.
  void skip(std::vector<uint64_t> positions);

  /// EvaluationPass::evaluate on the weights as they are, in pieces of a micro-batch.
  Evaluation evaluate(const FrozenBatch& batch);
  std::vector<Evaluation> evaluate(std::span<const FrozenBatch> batches);
  /// One forward pass over the frozen sequences with a probe watching. Throws DataError as `evaluate` does.
  void probe(const FrozenBatch& batch, Probe& probe);
  /// The same, but a GPU is not waited for: `probe` holds what it was to hear when it is handed to the reports that this gives. On the CPU
  /// it does at once, and they are none.
  LateReports probe_later(const FrozenBatch& batch, ProbeRecord& probe);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace saccade
