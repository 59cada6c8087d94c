#include "analysis/figures/branch_curves.h"

#include <algorithm>

#include "analysis/comparison/branches.h"

namespace saccade {
namespace {

/// The group that has the run of which all of these are branches; null where there is none.
const DrawnRuns* trunk_group(const DrawnRuns& group, const DrawnSet& drawn) {
  const DrawnRuns* trunk = nullptr;
  for (const Run* run : group.seeds) {
    const std::filesystem::path directory = trunk_of(run->info().directory);
    const auto of_it = [&](const Run* other) { return !directory.empty() && other->info().directory == directory; };
    const auto at = std::find_if(drawn.begin(), drawn.end(),
                                 [&](const DrawnRuns& other) { return std::any_of(other.seeds.begin(), other.seeds.end(), of_it); });
    if (at == drawn.end()) return nullptr;
    trunk = &*at;
  }
  return trunk;
}

bool is_of(const Curve& curve, const DrawnRuns& group) { return curve.label == group.label || curve.label.starts_with(group.label + ", "); }

}  // namespace

void subdue_branches(Figure& figure, const DrawnSet& drawn) {
  bool any = false;
  for (const DrawnRuns& group : drawn) {
    const DrawnRuns* trunk = trunk_group(group, drawn);
    if (!trunk) continue;
    for (Curve& curve : figure.curves) {
      if (curve.x.empty() || !is_of(curve, group)) continue;
      curve.colour = trunk->colour, curve.dash = Dash::dot, curve.in_legend = false;
      any = true;
    }
  }
  if (any) figure.curves.push_back({.label = "cooldown branches", .x = {}, .y = {}, .colour = {0x70, 0x70, 0x70}, .dash = Dash::dot});
}

}  // namespace saccade
