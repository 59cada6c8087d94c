#pragma once
/// The controls of Top-1 Chunk Selection: the latest chunks, or random ones (kernels/ops/top1_chunk/top1_chunk.h). Device code only.
#include "kernels/cuda/device/device_code.cuh"
#include "kernels/engine/random.h"

namespace saccade::cuda {

/// Chunks that a query at position t with `candidates` complete chunks before it attends to: the latest ones, or with `drawn` distinct
/// random ones by Floyd's sampling, as on the CPU.
__device__ __forceinline__ void take_control(const Random& random, bool drawn, int top_k, int64_t batch_head, int64_t t, int64_t candidates,
                                             int32_t* chosen) {
  const int64_t count = min(int64_t{top_k}, candidates);
  for (int64_t slot = 0; slot < top_k; ++slot) {
    if (slot >= count) {
      chosen[slot] = -1;
    } else if (!drawn) {
      chosen[slot] = static_cast<int32_t>(candidates - 1 - slot);
    } else {
      const int64_t last = candidates - count + slot;
      const uint64_t counter = (static_cast<uint64_t>(batch_head) << 40) + (static_cast<uint64_t>(t) << 8) + static_cast<uint64_t>(slot);
      auto c = static_cast<int32_t>(random.below(static_cast<uint64_t>(last) + 1, counter));
      for (int64_t earlier = 0; earlier < slot; ++earlier)
        if (chosen[earlier] == c) {
          c = static_cast<int32_t>(last);
          break;
        }
      chosen[slot] = c;
    }
  }
}

}  // namespace saccade::cuda
