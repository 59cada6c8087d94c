#pragma once
#include <string>
#include <vector>

#include "analysis/comparison/comparison.h"
#include "analysis/runs/run.h"
#include "app/cli/command.h"

namespace saccade::cli {

struct OpenedRuns {
  std::vector<Run> runs;
  std::vector<std::string> skipped;  ///< of those that cannot be shown: which and why, a line each
  std::vector<const Run*> pointers() const;
};

/// Opens run directories; a folder that is no run stands for the runs in it, in the natural order of
/// their names, and so does a study's. A run that cannot be read, or whose records are damaged
/// (what is shown would not be what was measured), is skipped with a line on stderr, --quiet or not, and the others go on. Throws
/// DataError when none remains, or where a path is no run and holds none. `with_branches`: a run that is named brings its cooldown branches
/// along, as one in a folder does.
OpenedRuns open_runs(const std::vector<std::string>& paths, bool with_branches = false);

/// Says which settings of a run have names of an earlier version, if some have.
void note_old_names(const RunInfo& info);

/// Options --pretraining and --window: what counts as the pre-training loss.
struct PretrainingOption {
  std::string kind = "validation";
  double window = PretrainingLoss{}.window;
  /// Throws UsageError, and DataError where one of the runs does not record it.
  PretrainingLoss chosen(const OpenedRuns& runs) const;
};
void add_pretraining_option(CLI::App& app, PretrainingOption& option);

/// Throws UsageError when `domain` (may be empty) is an OOD domain of none of the runs.
void require_domain(const OpenedRuns& runs, const std::string& domain);

}  // namespace saccade::cli
