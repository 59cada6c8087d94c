#pragma once
#include <cstdint>

namespace saccade::cuda {

/// Walkers get segments until every multiprocessor has `each` of them, of at least `shortest` steps.
struct SegmentRule {
  int64_t each, shortest;
};

/// How many segments to cut a walk of `steps` steps into, which `walkers` blocks make side by side. One where the walkers are enough or the
/// walk is short: segments are walked twice, first for what they make of a state, so that it takes some to gain.
int64_t segments_of(int64_t steps, int64_t walkers, const SegmentRule& rule);

/// Of a segment; the last one has what is left.
constexpr int64_t segment_steps(int64_t steps, int64_t segments) { return (steps + segments - 1) / segments; }

}  // namespace saccade::cuda
