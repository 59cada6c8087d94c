#pragma once
/// Heads whose halves are vectors of 16 bytes, each held by kLanes neighbouring threads. Device code only.
#include "kernels/cuda/device/device_code.cuh"
#include "kernels/cuda/device/rotation.cuh"
#include "kernels/ops/heads/heads.h"

namespace saccade::cuda {

constexpr float kUnitEpsilon = 1e-12f, kRmsEpsilon = 1e-5f;

/// Both pieces of a head that a thread holds.
template <class T>
struct Row {
  float low[kVector<T>], high[kVector<T>];
};
template <class T>
__device__ __forceinline__ Row<T> load_row(const T* x, int half) {
  const Pack<T> low = load_pack(x), high = load_pack(x + half);
  Row<T> row;
#pragma unroll
  for (int v = 0; v < kVector<T>; ++v) row.low[v] = to_float(low.v[v]), row.high[v] = to_float(high.v[v]);
  return row;
}
template <class T>
__device__ __forceinline__ void store_row(T* x, int half, const Row<T>& row) {
  Pack<T> low, high;
#pragma unroll
  for (int v = 0; v < kVector<T>; ++v) low.v[v] = from_float<T>(row.low[v]), high.v[v] = from_float<T>(row.high[v]);
  store_pack(x, low);
  store_pack(x + half, high);
}

template <int kLanes, class T>
__device__ __forceinline__ float dot(const Row<T>& x, const Row<T>& y) {
  float sum = 0;
#pragma unroll
  for (int v = 0; v < kVector<T>; ++v) sum += x.low[v] * y.low[v] + x.high[v] * y.high[v];
  // Heads beside this one in the warp may be done already.
  const unsigned together = ((1u << kLanes) - 1) << (threadIdx.x % 32 / kLanes * kLanes);
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset >>= 1) sum += __shfl_xor_sync(together, sum, offset);
  return sum;
}

/// 1 / root of the (mean of the) squares.
template <int kLanes, class T>
__device__ __forceinline__ float inverse_norm(QkNorm norm, const Row<T>& x) {
  const float squares = dot<kLanes>(x, x);
  return norm == QkNorm::l2 ? rsqrtf(squares + kUnitEpsilon) : rsqrtf(squares / static_cast<float>(2 * kLanes * kVector<T>) + kRmsEpsilon);
}

/// f(integral_constant of the threads that hold a head)
template <class F>
void for_lanes(DType dtype, int64_t width, F&& f) {
  switch (width * byte_size(dtype) / 32) {
    case 1: return f(std::integral_constant<int, 1>{});
    case 2: return f(std::integral_constant<int, 2>{});
    case 4: return f(std::integral_constant<int, 4>{});
    case 8: return f(std::integral_constant<int, 8>{});
    default: return f(std::integral_constant<int, 16>{});
  }
}

}  // namespace saccade::cuda
