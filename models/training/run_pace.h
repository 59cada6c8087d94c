#pragma once
#include "kernels/engine/clock.h"
#include "models/config/config.h"
#include "models/training/plan.h"

namespace saccade {

/// Seconds of what a run does, on one device.
struct RunPace {
  double step = 0;                ///< of a whole batch
  double evaluated_sequence = 0;  ///< of validation text, or of the generated task: the mean of its domains
  double probed_sequence = 0;     ///< statistics
  double captured_sample = 0;     ///< maps and losses of capture_tokens
};

/// Measures each by doing it again and again on random tokens on the plan's device, some 3 s in all where that is enough for two steps
/// after a warm-up. A mean, since what else the device is busy with will hold up the run likewise. `clock` tells seconds. Throws
/// UsageError, DeviceError.
RunPace measure_pace(const RunConfig& config, const Plan& plan, double (*clock)() = now);

nlohmann::json to_json(const RunPace& pace);
/// Of to_json(); throws nlohmann::json exceptions where something is missing.
RunPace pace_from(const nlohmann::json& json);

}  // namespace saccade
