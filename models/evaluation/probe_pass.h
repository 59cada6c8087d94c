#pragma once
#include <functional>
#include <optional>

#include "kernels/engine/host_copies.h"
#include "models/evaluation/frozen_batches.h"
#include "models/model.h"
#include "models/probe.h"

namespace saccade {

/// Forward passes over frozen sequences with a probe watching, on a model in training.
class ProbePass {
 public:
  /// `prepare` makes a tape compute as the model's own does (mixed precision).
  ProbePass(const Model& model, Arena& arena, std::function<void(Tape&)> prepare);

  /// On a GPU, begins to make memory for `bytes` of values that reports hold (at most kMostLateBytes): HostCopies::reserve.
  void reserve(int64_t bytes);
  /// Throws DataError as EvaluationPass::evaluate does.
  void run(const FrozenBatch& batch, Probe& probe);
  /// The same, but a GPU is not waited for: `probe` holds what it was to hear when it is handed to the reports that this gives. On the CPU
  /// it does at once, and they are none.
  LateReports run_later(const FrozenBatch& batch, ProbeRecord& probe);

 private:
  const Model& model_;
  Arena& arena_;
  std::function<void(Tape&)> prepare_;
  std::optional<HostCopies> copies_;  ///< of values, where they are computed on a GPU
};

}  // namespace saccade
