#pragma once
/// Log decays summed inside chunks. Device code only.
#include "kernels/cuda/device/device_code.cuh"
#include "kernels/ops/scalar_decay/scalar_decay_cuda.h"

namespace saccade::cuda {

/// softplus without the fast exponential: its sums run over a chunk.
__device__ __forceinline__ float softplus(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }

/// Inclusive sum over the lanes before.
__device__ __forceinline__ float warp_scan(float x) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const float before = __shfl_up_sync(0xffffffffu, x, offset);
    if (lane >= offset) x += before;
  }
  return x;
}

/// A warp's tokens t of chunk c: running[t] = Σ of value over the chunk's tokens up to t; value is called once per token, in order.
template <class Value>
__device__ __forceinline__ void running_sum(int c, int length, float* running, const Value& value) {
  constexpr int kChunk = DecayForm::kChunk;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float sum = 0;
  for (int first = c * kChunk; first < min(length, (c + 1) * kChunk); first += 32) {
    const int t = first + lane;
    const float through = sum + warp_scan(t < length ? value(t) : 0.0f);
    sum = __shfl_sync(0xffffffffu, through, 31);
    if (running && t < length) running[t] = through;
  }
}

}  // namespace saccade::cuda
