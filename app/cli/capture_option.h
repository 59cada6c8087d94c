#pragma once
#include "analysis/runs/run.h"

namespace saccade::cli {

/// The captured sample that --step (−1: the newest) and --sample name. Throws UsageError saying which there are, DataError when
/// the run holds none or its file is damaged.
Capture open_capture(const Run& run, int64_t step, int64_t sample);

}  // namespace saccade::cli
