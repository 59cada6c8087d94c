#pragma once
/// How the ranker chooses among earlier splits and weighs them, for training and decoding alike. Device code only.
#include <climits>

#include "kernels/cuda/device/device_code.cuh"

namespace saccade::cuda {

constexpr float kNormEps = 1e-8f, kWeightEps = 1e-8f;
constexpr int kMostChosen = 64;  ///< greatest top_k

__device__ __forceinline__ float inverse(float norm) { return 1.0f / (norm + kNormEps); }

struct Best {
  float value;
  int index;
};
/// The larger; of equals the one with the smaller index.
__device__ __forceinline__ Best better(Best a, Best b) { return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a; }
__device__ __forceinline__ Best warp_best(Best x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1)
    x = better(x, {__shfl_xor_sync(0xffffffffu, x.value, offset), __shfl_xor_sync(0xffffffffu, x.index, offset)});
  return x;
}

/// Slot of the score that the others are divided by.
__device__ __forceinline__ int reference_slot(const float* scores, const int32_t* chosen, int count, bool first_reference) {
  int slot = 0;
  if (!first_reference)
    for (int s = 1; s < count; ++s)
      if (scores[chosen[s]] > scores[chosen[slot]]) slot = s;
  return slot;
}

/// The `count` best of `candidates` splits, count <= kMostChosen.
struct Choice {
  int candidates, count;
  bool weighting, first_reference;
};
/// By a block of kThreads threads: the best candidates in sequence order, and their weights. NaN scores count as the least.
template <int kThreads>
__device__ __forceinline__ void choose(const Choice& z, const float* scores, int32_t* chosen, float* weights) {
  __shared__ int32_t taken[kMostChosen];
  __shared__ Best parts[kThreads / 32];
  for (int slot = 0; slot < z.count; ++slot) {
    Best best{-INFINITY, INT_MAX};
    for (int p = static_cast<int>(threadIdx.x); p < z.candidates; p += kThreads) {
      bool free = true;
      for (int s = 0; s < slot; ++s) free &= taken[s] != p;
      if (free) best = better(best, {isnan(scores[p]) ? -INFINITY : scores[p], p});
    }
    best = warp_best(best);
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = best;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int w = 1; w < kThreads / 32; ++w) best = better(best, parts[w]);
      taken[slot] = best.index;
    }
    __syncthreads();
  }
  if (threadIdx.x > 0) return;
  for (int s = 0; s < z.count; ++s) {  // sorted on the way
    int at = s;
    for (; at > 0 && chosen[at - 1] > taken[s]; --at) chosen[at] = chosen[at - 1];
    chosen[at] = taken[s];
  }
  if (z.count == 0) return;
  const float reference = scores[chosen[reference_slot(scores, chosen, z.count, z.first_reference)]] + kWeightEps;
  for (int s = 0; s < z.count; ++s) weights[s] = z.weighting ? scores[chosen[s]] / reference : 1.0f;
}

}  // namespace saccade::cuda
