#pragma once
#include "models/config/config.h"
#include "models/model.h"
#include "models/training/plan.h"
#include "models/training/run_pace.h"

namespace saccade {

/// Steps of the cooldown branches of a run, beyond its own.
int64_t branch_steps(const TrainingConfig& training);

/// How often a run does what takes its time, its branches counted.
struct RunWork {
  double steps = 0;  ///< whole batches; the smaller ones of a warm-up count by their FLOPs
  int64_t evaluated_sequences = 0, probed_sequences = 0, captured_samples = 0;
};
RunWork run_work(const RunConfig& config, const Plan& plan);

/// Seconds of a run with its branches, evaluations, statistics and captures; not of preparing text and writing files. A run that ends at an
/// accuracy may take less.
double run_seconds(const RunConfig& config, const Plan& plan, const RunPace& pace);

/// Bytes of a checkpoint: weights in f32 and the optimizer's state.
int64_t checkpoint_bytes(const Plan& plan);
/// Checkpoints that a run that has ended keeps at most: the last two, one before the loss left its course (as far as so many are written),
/// those that its config names, and two of every branch.
int64_t checkpoints_kept(const TrainingConfig& training);

/// Steps of a run at which it captures; the captures of each take Plan::capture_bytes.
int64_t captures_kept(const TrainingConfig& training);

/// Parameters of tables that tokens and positions are looked up in, which papers often leave out of a model's size. An output matrix of its
/// own is not among them. Counted without allocating the model. Throws UsageError, DataError (a tokenizer that is not there).
int64_t count_embedding_parameters(const RunConfig& config);
/// The same of a model that is there.
int64_t count_embedding_parameters(const Model& model);

}  // namespace saccade
