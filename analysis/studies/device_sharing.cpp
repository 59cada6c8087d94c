#include "analysis/studies/device_sharing.h"

#include <algorithm>
#include <set>

namespace saccade {

void DeviceSharing::measured(const std::string& model, int64_t together, double tokens_per_second) {
  Mean& mean = paces_[{model, together}];
  mean.sum += tokens_per_second;
  ++mean.count;
}

std::optional<double> DeviceSharing::pace(const std::string& model, int64_t together) const {
  const auto at = paces_.find({model, together});
  return at == paces_.end() ? std::nullopt : std::optional(at->second.sum / static_cast<double>(at->second.count));
}

std::optional<double> DeviceSharing::gain(const std::vector<std::string>& models, int64_t together) const {
  double sum = 0;
  int64_t known = 0;
  for (const std::string& model : std::set<std::string>(models.begin(), models.end())) {
    const std::optional<double> more = pace(model, together), fewer = pace(model, together - 1);
    if (!more || !fewer || *fewer <= 0) continue;
    sum += static_cast<double>(together) * *more / (static_cast<double>(together - 1) * *fewer);
    ++known;
  }
  return known > 0 ? std::optional(sum / static_cast<double>(known)) : std::nullopt;
}

bool DeviceSharing::may_add(const std::vector<std::string>& models) const {
  const auto running = static_cast<int64_t>(models.size());
  if (running == 0) return true;
  if (running >= kMostRuns) return false;
  if (std::any_of(models.begin(), models.end(), [&](const std::string& model) { return !pace(model, running); })) return false;
  const auto pays = [&](int64_t together) { return gain(models, together).value_or(1 + kGain) >= 1 + kGain; };
  return pays(running) && pays(running + 1);
}

}  // namespace saccade
