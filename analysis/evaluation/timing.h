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

/// Where the time of one of `calls` calls went that a tape has profiled; longest first.
std::vector<OpShare> profile_of(const std::map<std::string, Tape::OpTime>& profile, int64_t calls);

}  // namespace saccade
