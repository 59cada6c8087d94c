#pragma once
#include <string>
#include <vector>

#include "analysis/runs/run.h"

namespace saccade::cli {

struct OpenedRuns {
  std::vector<Run> runs;
  std::vector<const Run*> pointers() const;
};

/// Opens run directories; a folder that is no run stands for the runs in it. Throws DataError when there is none.
OpenedRuns open_runs(const std::vector<std::string>& paths);

}  // namespace saccade::cli
