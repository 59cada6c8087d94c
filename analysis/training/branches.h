#pragma once
#include "analysis/runs/checkpoint_file.h"
#include "analysis/runs/run.h"
#include "analysis/training/training_run.h"

namespace saccade {

/// "RUN/branches/step-N"
std::filesystem::path branch_directory(const std::filesystem::path& trunk, int64_t step);
/// Whether it has a checkpoint from which it goes on.
bool branch_begun(const std::filesystem::path& trunk, int64_t step);
/// Whether the branch has run to its end or diverged: then there is nothing left to do.
bool branch_finished(const std::filesystem::path& trunk, int64_t step);

/// Where branches of the setting cooldown_at_loss begin, by the evaluations so far: for each loss the first stable step (stable_steps) at
/// which the validation loss is no higher. Ascending, each once; a branch that would have no step to cool down is none.
std::vector<int64_t> passed_losses(const TrainingConfig& training, const Series& validation);

/// The config of a cooldown branch from a step of a run with the schedule wsd: the same, cooling down from there to its own end.
RunConfig cooldown_config(const RunConfig& trunk, int64_t step);

/// Throws UsageError, with every difference in words, unless a checkpoint's weights and optimizer state fit the config.
void require_same_model(const RunConfig& config, const Checkpoint& checkpoint, int64_t vocabulary);

}  // namespace saccade
