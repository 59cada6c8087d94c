#pragma once
#include <filesystem>

#include "analysis/runs/hdf5.h"
#include "analysis/runs/run_records.h"

namespace saccade {

/// What every item of a task got at one checkpoint, from RUN/tasks/TASK-step-N….json, as the group items/step-N of the task's group in
/// results.h5; nothing where that file is not there, is damaged, or is of another checkpoint or data than the record. Items stand in their
/// order in the task, so that two runs pair by place where data_hashes agree:
///
///     right             [items] 0 or 1 by the task's own metric; of a task on symbols the share of an example's answers that are right
///     log_likelihoods   [items, choices] nats; NaN where an item has fewer choices; likewise of what is by choice:
///     characters, tokens   [items, choices] of the choice; not in what earlier versions scored
///     chosen, chosen_norm, chosen_bytes, gold   [items] the choice taken by acc, acc_norm and acc_bytes, and the right one, from 0
///     answer, target    [items] of generation, as text: what was written, and what was to be
///     prompt_tokens, depth   [items] of generation; depth: the needle's token over the prompt's, NaN where there is none
void write_task_items(const h5::Group& task, const std::filesystem::path& run, const TaskScoreRecord& record);

}  // namespace saccade
