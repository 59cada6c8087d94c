#pragma once
#include <functional>
#include <string>
#include <vector>

#include "models/json.h"
#include "models/settings.h"

namespace saccade {

/// Where a step stands in a run; steps count from 1.
struct SchedulePoint {
  int64_t step = 0, warmup_steps = 0, steps = 0;
  /// 0 at the end of the warm-up, 1 at the last step; for steps behind the warm-up.
  double progress() const { return static_cast<double>(step - warmup_steps) / static_cast<double>(steps - warmup_steps); }
};

/// One entry of the registry of schedules (`training.schedule`): the learning rate after the linear warm-up.
struct Schedule {
  std::string id;     ///< "cosine"
  std::string title;  ///< "cosine"
  std::string paper;  ///< citation with section; may be empty
  std::vector<Setting> settings = {};
  nlohmann::json defaults = nlohmann::json::object();  ///< what it overrides among the settings of training (min_lr_ratio)
  /// From 1 (the peak) to 0 (min_lr_ratio of the peak) at a step behind the warm-up.
  std::function<double(const SchedulePoint&, const nlohmann::json& values)> course;
  /// Throws UsageError when settings do not fit the run's steps.
  std::function<void(const SchedulePoint& last, const nlohmann::json& values, const std::string& pointer)> check = {};
};

/// All entries, sorted by id. A file registers its own with a namespace-scope `const RegisterSchedule`.
const std::vector<const Schedule*>& schedules();
/// Throws UsageError with a suggestion when there is none of that id.
const Schedule& schedule(const std::string& id);

struct RegisterSchedule {
  explicit RegisterSchedule(Schedule entry);
};

}  // namespace saccade
