#pragma once
#include <string>
#include <vector>

#include "analysis/runs/run.h"

namespace saccade {

/// Runs of one experiment (Run::experiment: model, data, training, precision), repeated with other seeds, threads, devices or
/// intervals of observation.
struct RunGroup {
  std::string label;              ///< the architecture, and the settings in which groups of one architecture differ: group_names()
  std::vector<const Run*> seeds;  ///< by seed
};

/// In the order in which each is first met, without labels.
std::vector<RunGroup> gather_runs(const std::vector<const Run*>& runs);
/// The same with labels. `among`: all runs that labels must tell apart, when those are more than `runs`.
std::vector<RunGroup> group_runs(const std::vector<const Run*>& runs, const std::vector<const Run*>& among = {});

}  // namespace saccade
