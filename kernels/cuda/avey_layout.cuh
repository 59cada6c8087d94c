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

/// By a warp: calls f(entry) in every lane for each entry of list[first … last) that is `wanted`, in ascending order.
template <class F>
__device__ __forceinline__ void each_entry(const int32_t* list, int64_t first, int64_t last, int32_t wanted, F&& f) {
  for (int64_t base = first; base < last; base += 32) {
    const int64_t e = base + threadIdx.x % 32;
    for (unsigned hits = __ballot_sync(0xffffffffu, e < last && list[e] == wanted); hits; hits &= hits - 1)
      f(base + __ffs(static_cast<int>(hits)) - 1);
  }
}

/// Warps of a block that gather a row of D floats each in shared memory.
inline int gathering_warps(int64_t D) { return static_cast<int>(std::clamp<int64_t>(12288 / D, 1, 4)); }

}  // namespace saccade::cuda
