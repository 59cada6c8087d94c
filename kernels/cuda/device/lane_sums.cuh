#pragma once
/// Sums of several values over some lanes of a warp at once. Device code only.
#include "kernels/cuda/device/device_code.cuh"

namespace saccade::cuda {

/// Sums x[0 … kLive) over the lanes that differ in bits kTop, kTop / 2, … kLow of their number (kTop < kLow: over none). At every
/// step a lane passes on the half of the values that it does not go on summing. Of n such lanes the i-th (their bits, highest first) ends
/// with the sums of x[i kLive / n …], or with that of x[i / (n / kLive)] when there are more lanes than values, in x[0 …].
template <int kLive, int kTop, int kLow, int kSize>
__device__ __forceinline__ void lane_sums(float (&x)[kSize]) {
  if constexpr (kTop >= kLow && kLive > 1) {
    constexpr int kHalf = kLive / 2;
    const bool upper = threadIdx.x & kTop;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float given = upper ? x[i] : x[i + kHalf], kept = upper ? x[i + kHalf] : x[i];
      x[i] = kept + __shfl_xor_sync(0xffffffffu, given, kTop);
    }
    lane_sums<kHalf, kTop / 2, kLow>(x);
  } else if constexpr (kTop >= kLow) {
    x[0] += __shfl_xor_sync(0xffffffffu, x[0], kTop);
    lane_sums<1, kTop / 2, kLow>(x);
  }
}

}  // namespace saccade::cuda
