#pragma once
/// Rotary positions. Device code only.
#include <cuda_runtime.h>

namespace saccade::cuda {

/// Turns from one position to the next of a pair, its share of the half head (arXiv:2104.09864, section 3.2.2). In double, as turns are:
/// positions reach 10^5.
__device__ __forceinline__ double turns_of_pair(double pair, double log2_base) { return exp2(-pair * log2_base) * 0.15915494309189533577; }

/// Cosine and sine of so many turns.
__device__ __forceinline__ float2 cosine_and_sine(double turns) {
  float2 angle;
  sincospif(static_cast<float>(2 * (turns - rint(turns))), &angle.y, &angle.x);
  return angle;
}

}  // namespace saccade::cuda
