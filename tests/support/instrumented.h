#pragma once

namespace saccade::test {

/// How many times as long what this program does may take: sanitizers and counters of lines slow it down, and others beside it.
#ifdef SACCADE_INSTRUMENTED
inline constexpr int kSlower = 20;
#else
inline constexpr int kSlower = 1;
#endif

}  // namespace saccade::test
