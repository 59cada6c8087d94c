#pragma once
#include "models/config/config.h"
#include "models/training/plan.h"

namespace saccade {

/// Steps of the cooldown branches of a run, beyond its own.
int64_t branch_steps(const TrainingConfig& training);

/// Seconds of a run with its branches and evaluations, which take a share of a step by their FLOPs; not of preparing text.
double run_seconds(const RunConfig& config, const Plan& plan, double step_seconds);

/// Bytes of a checkpoint: weights in f32 and the optimizer's state.
int64_t checkpoint_bytes(const Plan& plan);
/// Checkpoints that a run that has ended keeps at most: the last two, one before the loss left its course, those that its config names, and
/// two of every branch.
int64_t checkpoints_kept(const TrainingConfig& training);

/// Steps of a run at which it captures; the captures of each take Plan::capture_bytes.
int64_t captures_kept(const TrainingConfig& training);

/// Parameters of tables that tokens and positions are looked up in, which papers often leave out of a model's size. An output matrix of its
/// own is not among them. Counted without allocating the model. Throws UsageError, DataError (a tokenizer that is not there).
int64_t count_embedding_parameters(const RunConfig& config);

}  // namespace saccade
