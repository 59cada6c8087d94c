#pragma once
#include <vector>

#include "models/training/training_step.h"

namespace saccade {

/// Optimizer::state of a model whose optimizer has several ranks, for all parameters, in memory of `arena` (on `plan`: names and shapes
/// alone). All zeros, as an optimizer begins.
std::vector<TensorGroup> whole_optimizer_state(const TrainingStep& step, Arena& arena);

/// Brings the state of all ranks' optimizers to rank 0, to the CPU, into `whole` (of whole_optimizer_state; elsewhere on `plan`), or from
/// there to the ranks. Every rank calls it. With one rank it copies. Throw as Communicator does.
void gather_optimizer_state(const TrainingStep& step, const std::vector<TensorGroup>& whole);
void scatter_optimizer_state(const TrainingStep& step, const std::vector<TensorGroup>& whole);

}  // namespace saccade
