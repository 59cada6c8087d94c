#include "kernels/ops/first_largest/first_largest_cuda.h"

#include <climits>

#include "kernels/cuda/device/device_code.cuh"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 1024;

/// The largest number seen and its first place; at INT_MAX: none.
struct Largest {
  float value = -INFINITY;
  int at = INT_MAX;
  __device__ void offer(float x, int i) {
    if (i == INT_MAX || x != x) return;
    if (at == INT_MAX || x > value || (x == value && i < at)) value = x, at = i;
  }
  /// Of the lanes of a warp.
  __device__ void offer_lanes() {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, value, step);
      const int other_at = __shfl_xor_sync(0xffffffffu, at, step);
      offer(other, other_at);
    }
  }
};

/// A block per row.
template <class T>
__global__ void __launch_bounds__(kThreads) first_largest_kernel(const T* x, int64_t width, int32_t* index) {
  __shared__ float values[kThreads / 32];
  __shared__ int places[kThreads / 32];
  const T* row = x + blockIdx.x * width;
  Largest best;
  for (int64_t i = threadIdx.x; i < width; i += kThreads) best.offer(to_float(row[i]), static_cast<int>(i));
  best.offer_lanes();
  if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = best.value, places[threadIdx.x / 32] = best.at;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  static_assert(kThreads / 32 == 32);
  best = {values[threadIdx.x], places[threadIdx.x]};
  best.offer_lanes();
  if (threadIdx.x == 0) index[blockIdx.x] = best.at == INT_MAX ? 0 : best.at;
}

}  // namespace

void first_largest(Stream stream, const Tensor& x, const Tensor& index) {
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    first_largest_kernel<<<static_cast<unsigned>(x.dim(0)), kThreads, 0, stream>>>(pointer<T>(x), x.dim(1), pointer<int32_t>(index));
  });
  check_launch();
}

}  // namespace saccade::cuda
