#include "kernels/ops/shared/segments_cuda.h"

#include <algorithm>

#include "kernels/engine/cuda_limits.h"

namespace saccade::cuda {
namespace {

constexpr int64_t kFewest = 4;

}  // namespace

int64_t segments_of(int64_t steps, int64_t walkers, const SegmentRule& rule) {
  const int64_t wanted = (rule.each * multiprocessors() + walkers - 1) / walkers, segments = std::min(wanted, steps / rule.shortest);
  return segments < kFewest ? 1 : segment_steps(steps, segment_steps(steps, segments));
}

}  // namespace saccade::cuda
