#pragma once
/// Small helpers of kernels. Device code only.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/runtime/check.h"
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/tensor.h"

namespace saccade::cuda {

using bf16 = __nv_bfloat16;

/// Elements that one 16-byte access moves.
template <class T>
constexpr int kVector = 16 / sizeof(T);

/// A 16-byte piece of T, loaded and stored at once.
template <class T>
struct alignas(16) Pack {
  T v[kVector<T>];
};
template <class T>
__device__ __forceinline__ Pack<T> load_pack(const T* p) {
  return *reinterpret_cast<const Pack<T>*>(p);
}
template <class T>
__device__ __forceinline__ void store_pack(T* p, const Pack<T>& x) {
  *reinterpret_cast<Pack<T>*>(p) = x;
}

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bf16 x) { return __bfloat162float(x); }
template <class T>
__device__ __forceinline__ T from_float(float x) {
  if constexpr (std::is_same_v<T, bf16>)
    return __float2bfloat16_rn(x);
  else
    return x;
}

/// Sum over kLanes neighbouring lanes, in each of them; the order of additions is fixed.
template <int kLanes>
__device__ __forceinline__ float sum_of_lanes(float x) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset >>= 1) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}
/// Sum (or maximum) over the 32 lanes of a warp, in every lane.
__device__ __forceinline__ float warp_sum(float x) { return sum_of_lanes<32>(x); }
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, offset));
  return x;
}

/// Sum over a block of kThreads threads, in every thread. Safe to call repeatedly.
template <int kThreads>
__device__ __forceinline__ float block_sum(float x) {
  __shared__ float parts[kThreads / 32];
  x = warp_sum(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) sum += parts[w];
  return sum;
}

inline unsigned blocks_for(int64_t items, int64_t per_block) { return static_cast<unsigned>((items + per_block - 1) / per_block); }

/// f(float{}) or f(bf16{}) for the dtype of an activation.
template <class F>
decltype(auto) dispatch_cuda(DType dtype, F&& f) {
  return dtype == DType::bf16 ? f(bf16{}) : f(float{});
}
template <class T>
T* pointer(const Tensor& x) {
  return static_cast<T*>(x.raw());
}

}  // namespace saccade::cuda
