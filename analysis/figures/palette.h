#pragma once
#include <map>
#include <string>
#include <vector>

#include "analysis/figures/figure.h"

namespace saccade {

struct ArchitectureLook {
  Colour colour;
  Marker marker = Marker::circle;
};
/// Colour and marker of each label; 35 differ, then they come again. The known architectures keep theirs whatever else there
/// is; variants get in turn what is free, so that a later variant changes nothing for others.
std::map<std::string, ArchitectureLook> architecture_looks(const std::vector<std::string>& labels);

/// Of the seed of this rank in its group.
Dash seed_dash(size_t rank);

/// How a run is called and drawn, the same in every figure and list: colour and marker belong to the architecture (in one
/// setting, see group_runs()), the dash to the seed.
struct RunLook {
  std::string architecture;  ///< label of its group
  std::string label;         ///< with the seed where there are several
  Colour colour;
  Marker marker = Marker::circle;
  Dash dash = Dash::solid;
  bool operator==(const RunLook&) const = default;
};
/// In the order of `runs`; which look is whose depends on when runs started, not on that order. `among`: all runs to tell apart, when those
/// are more than `runs`.
std::vector<RunLook> run_looks(const std::vector<const Run*>& runs, const std::vector<const Run*>& among = {});

}  // namespace saccade
