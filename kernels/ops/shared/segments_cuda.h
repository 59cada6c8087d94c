#pragma once
#include <cstdint>

namespace saccade::cuda {

/// Target: `each` segments per multiprocessor, of at least `shortest` steps.
struct SegmentRule {
  int64_t each, shortest;
};

/// Number of segments for a recurrence of `steps` steps that `walkers` blocks run in parallel. 1 where the blocks fill the GPU or the
/// recurrence is short: every segment runs twice, first for its linear map of the state, so a few segments gain nothing.
int64_t segments_of(int64_t steps, int64_t walkers, const SegmentRule& rule);

/// Steps in a segment; the last segment may be shorter.
constexpr int64_t segment_steps(int64_t steps, int64_t segments) { return (steps + segments - 1) / segments; }

}  // namespace saccade::cuda
