#include <algorithm>
#include <cmath>

#include "analysis/comparison/comparison.h"

namespace saccade {

Trajectory trajectory(const Run& run, const std::string& domain) {
  Trajectory t;
  const Series* inside = run.find("validation/loss");
  const Series* outside = run.find(domain.empty() ? "ood/loss" : "ood/loss/" + domain);
  if (!inside || !outside) return t;
  size_t j = 0;
  for (size_t i = 0; i < inside->step.size(); ++i) {
    while (j < outside->step.size() && outside->step[j] < inside->step[i]) ++j;
    if (j == outside->step.size()) break;
    if (outside->step[j] != inside->step[i] || !std::isfinite(inside->value[i]) || !std::isfinite(outside->value[j])) continue;
    t.pretraining.push_back(inside->value[i]);
    t.ood.push_back(outside->value[j]);
    t.step.push_back(inside->step[i]);
  }
  return t;
}

std::optional<double> ood_at(const Trajectory& trajectory, double pretraining_loss) {
  if (trajectory.pretraining.empty() || trajectory.pretraining.front() < pretraining_loss) return {};
  double above = trajectory.pretraining.front(), ood_above = trajectory.ood.front();
  for (size_t i = 0; i < trajectory.pretraining.size(); ++i) {
    const double loss = trajectory.pretraining[i], ood = trajectory.ood[i];
    if (i > 0 && loss >= above) continue;  // not on the envelope
    if (loss <= pretraining_loss) {
      const double share = above == loss ? 1 : (above - pretraining_loss) / (above - loss);
      return ood_above + share * (ood - ood_above);
    }
    above = loss;
    ood_above = ood;
  }
  return {};
}

std::optional<double> common_loss(const std::vector<const Run*>& runs) {
  double lowest_of_all = -INFINITY, start = INFINITY;
  for (const Run* run : runs) {
    const Trajectory t = trajectory(*run);
    if (t.pretraining.empty() || run->info().state == RunState::diverged) continue;
    lowest_of_all = std::max(lowest_of_all, *std::min_element(t.pretraining.begin(), t.pretraining.end()));
    start = std::min(start, t.pretraining.front());
  }
  if (!std::isfinite(lowest_of_all) || lowest_of_all > start) return {};
  return lowest_of_all;
}

}  // namespace saccade
