#pragma once
#include <functional>

#include "analysis/evaluation/benchmark.h"

namespace saccade {

/// What is timed: `once` starts it, `finish` waits for it, `reset` is called after the warm-up.
struct TimedWork {
  std::function<void()> once, finish, reset;
};

/// Times work as the options say; `calls` receives how often it was run after the warm-up. Throws UsageError.
Timing measure(const std::string& name, const BenchmarkOptions& options, Device device, const TimedWork& work, int64_t& calls);

}  // namespace saccade
