#pragma once
#include <chrono>

namespace saccade {

/// Seconds on a clock that never goes back; only differences mean something.
inline double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace saccade
