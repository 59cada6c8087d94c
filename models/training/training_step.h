#pragma once
#include <memory>
#include <span>
#include <vector>

#include "kernels/adamw.h"
#include "models/config.h"
#include "models/model.h"

namespace saccade {

/// A model with everything that one optimizer step touches, on any device: the trainer runs it, the plan runs it on
/// `plan`, so what a plan says comes from the code that will train.
class TrainingStep {
 public:
  /// Throws UsageError for a precision the device does not compute in.
  TrainingStep(const RunConfig& config, int64_t vocabulary, Device device);

  int64_t sequences() const { return tokens_.dim(0); }  ///< of a micro-batch
  int64_t length() const { return tokens_.dim(1); }
  std::span<int32_t> tokens() const;  ///< where the next micro-batch goes, [sequences, length]
  std::span<int32_t> targets() const;

  void begin();                                     ///< of a step: gradients start anew
  double forward_backward();                        ///< one micro-batch; returns its mean loss in nats (0 on `plan`)
  double gradient_norm();                           ///< of the mean gradient over the micro-batches so far (0 on `plan`)
  void update(double learning_rate, int64_t step);  ///< clip and AdamW; `step` counts from 1

  Tape& tape() { return tape_; }
  Arena& arena() { return arena_; }
  const Model& model() const { return *model_; }
  const std::vector<AdamWSlot>& slots() const { return slots_; }  ///< in the order of model().parameters()
  DType dtype() const { return dtype_; }

 private:
  const TrainingConfig training_;
  DType dtype_;
  Arena arena_;
  Tape tape_;
  std::unique_ptr<Model> model_;
  std::vector<AdamWSlot> slots_;
  Tensor tokens_, targets_, norm_, rates_;
};

/// "f32", "f64" as a type the device computes in. Throws UsageError.
DType parse_precision(const std::string& precision, Device device);

/// Sets the CPU threads a config asks for; 0: as many as the program started with.
void use_threads(int64_t threads);

}  // namespace saccade
