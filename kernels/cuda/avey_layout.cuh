#pragma once
/// Where the rows of Avey's contexts stand, on the device.
#include "kernels/avey/layout.h"
#include "kernels/cuda/device_code.cuh"

namespace saccade::cuda {

/// Row of the matrix at position p of context (b, i), positions counted as those of A; −1: none (masked padding, or a token
/// behind the last one).
__device__ __forceinline__ int64_t row_at(const avey::ContextLayout& l, int64_t b, int64_t i, int64_t p) {
  const int64_t before = l.padding_before(i), own = l.split * l.top_k;
  if (p < before) return l.padding ? p : -1;
  if (p < own) return l.chosen_row(b, i) + p - before;
  return p - own < l.own_count(i) ? l.own_row(b, i) + p - own : -1;
}

/// Calls f(entry) in every thread of the block for each entry of list[first … last) that is `wanted`, in ascending order.
template <int kThreads, class F>
__device__ __forceinline__ void each_entry(const int32_t* list, int64_t first, int64_t last, int32_t wanted, F&& f) {
  __shared__ unsigned found[kThreads / 32];
  for (int64_t base = first; base < last; base += kThreads) {
    const int64_t e = base + threadIdx.x;
    const unsigned hits = __ballot_sync(0xffffffffu, e < last && list[e] == wanted);
    __syncthreads();
    if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = hits;
    __syncthreads();
    for (int w = 0; w < kThreads / 32; ++w)
      for (unsigned bits = found[w]; bits; bits &= bits - 1) f(base + 32 * w + __ffs(static_cast<int>(bits)) - 1);
  }
}

}  // namespace saccade::cuda
