#pragma once
#include "analysis/runs/run.h"

namespace saccade {

/// Builds RUN/results.h5 from the journal: every series with step, tokens, FLOPs and seconds, the statistics of every head,
/// config and provenance, with NeXus attributes so that a viewer plots the losses on opening. Written aside, read back,
/// compared, synced and renamed. Throws DataError; the earlier file then stays.
///
///     /run                      NXentry
///     /run/losses               NXdata: validation and OOD losses over tokens (the default plot)
///     /run/series/train.loss    NXdata: value, step, tokens, flops, seconds; likewise for every series
///     /run/statistics/entropy   NXdata: value [records, layers, heads], step; of a hybrid stack layer_mixers, what each layer mixes with
///     /run/evaluation/TASK      NXdata: scores and errors, chance, step of every checkpoint that was scored
///     /run/evaluation/TASK/items/step-N   what every item got there, where the run has kept it (task_items_group.h)
///     /run/config, /run/provenance   JSON
///     /run/journal_lost         what the journal lost, in a line; only where it lost something
void write_results_file(const RunInfo& info);

/// Whether RUN/results.h5 is there, whole, and what the journal and run.json say. Throws DataError when the journal cannot be read.
bool results_file_is_current(const RunInfo& info);

/// The series of a results file. Throws DataError.
std::vector<Series> read_results_series(const std::filesystem::path& path);

}  // namespace saccade
