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

namespace {

struct Reach {
  double first, lowest;
  bool whole;  ///< nothing is to come
};

/// Without the run that is least far, until one loss lies on the way of all.
std::optional<double> common_of(std::vector<Reach> reaches) {
  std::sort(reaches.begin(), reaches.end(), [](const Reach& a, const Reach& b) { return a.lowest < b.lowest; });
  while (!reaches.empty()) {
    double start = INFINITY;
    for (const Reach& reach : reaches) start = std::min(start, reach.first);
    if (reaches.back().lowest <= start) return reaches.back().lowest;
    reaches.pop_back();
  }
  return {};
}

}  // namespace

std::optional<double> common_loss(const std::vector<const Run*>& runs) {
  std::vector<Reach> reaches, whole;
  for (const Run* run : runs) {
    const Trajectory t = trajectory(*run);
    if (t.pretraining.empty() || run->info().state == RunState::diverged || !run->damage().empty()) continue;
    reaches.push_back(
        {t.pretraining.front(), *std::min_element(t.pretraining.begin(), t.pretraining.end()), run->info().state == RunState::finished});
    if (reaches.back().whole) whole.push_back(reaches.back());
  }
  return common_of(whole.empty() ? reaches : whole);
}

}  // namespace saccade
