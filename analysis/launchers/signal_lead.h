#pragma once
#include <cstdint>
#include <filesystem>

#include "analysis/studies/study_folder.h"

namespace saccade {

/// Seconds before a time limit at which a run must be told to end: 3 x (checkpoint + step), 120 at least.
int64_t signal_lead(double checkpoint_seconds, double step_seconds);

/// What a checkpoint of so many bytes takes, to be written and read back, at the pace of a file that is written and synced in `folder` now
/// (at most 64 MiB). Throws DataError.
double checkpoint_seconds(const std::filesystem::path& folder, int64_t bytes);

/// The bytes of the largest checkpoint that the study's open runs write, by their plans, and the seconds of the longest step that its runs
/// have taken so far (0: none has).
struct RunPaces {
  int64_t checkpoint_bytes = 0;
  double step_seconds = 0;
};
RunPaces run_paces(const StudyView& view);

}  // namespace saccade
