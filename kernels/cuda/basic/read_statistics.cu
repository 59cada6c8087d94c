#include "kernels/cuda/device/device_code.cuh"
#include "kernels/ops/read_statistics/read_statistics_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kWarps = 16, kThreads = 32 * kWarps;

/// Over the lanes of a warp, in each of them, in a fixed order.
__device__ double sum_of_warp(double x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}

/// A block owns a head, a warp every kWarps-th query of it.
template <class T>
__global__ void read_sums_kernel(const T* weights, int64_t length, int64_t near, double* sums) {
  __shared__ double parts[2][kWarps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const T* map = weights + blockIdx.x * length * length;
  double distance = 0, outside = 0;
  for (int64_t t = warp; t < length; t += kWarps)
    for (int64_t j = lane; j <= t; j += 32) {
      const double w = static_cast<double>(to_float(map[t * length + j]));
      distance += w * static_cast<double>(t - j);
      if (t - j >= near) outside += w;
    }
  distance = sum_of_warp(distance);
  outside = sum_of_warp(outside);
  if (lane == 0) {
    parts[0][warp] = distance;
    parts[1][warp] = outside;
  }
  __syncthreads();
  if (threadIdx.x >= 2) return;
  double sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += parts[threadIdx.x][w];
  sums[2 * blockIdx.x + threadIdx.x] = sum;
}

/// A warp owns a query.
template <class T>
__global__ void query_reads_kernel(const T* weights, int64_t rows, int64_t length, int64_t near, double* reads) {
  const int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (row >= rows) return;
  const int lane = threadIdx.x % 32;
  const int64_t t = row % length;
  const T* w = weights + row * length;
  double total = 0;
  for (int64_t j = lane; j <= t; j += 32) total += fabs(static_cast<double>(to_float(w[j])));
  total = sum_of_warp(total);
  double entropy = 0, distance = 0, outside = 0;
  if (total > 0)
    for (int64_t j = lane; j <= t; j += 32) {
      const double p = fabs(static_cast<double>(to_float(w[j]))) / total;
      if (p > 0) entropy -= p * log(p);
      distance += p * static_cast<double>(t - j);
      if (t - j >= near) outside += p;
    }
  entropy = sum_of_warp(entropy);
  distance = sum_of_warp(distance);
  outside = sum_of_warp(outside);
  if (lane > 0) return;
  const double nothing = total > 0 ? 0 : nan("");
  reads[3 * row] = entropy + nothing;
  reads[3 * row + 1] = distance + nothing;
  reads[3 * row + 2] = outside + nothing;
}

}  // namespace

void read_sums(Stream stream, const Tensor& weights, int64_t near, const Tensor& sums) {
  dispatch_cuda(weights.dtype(), [&](auto zero) {
    read_sums_kernel<<<static_cast<unsigned>(weights.dim(0)), kThreads, 0, stream>>>(pointer<decltype(zero)>(weights), weights.dim(1), near,
                                                                                     pointer<double>(sums));
  });
  check_launch();
}

void query_reads(Stream stream, const Tensor& weights, int64_t near, const Tensor& reads) {
  const int64_t rows = weights.dim(0) * weights.dim(1);
  dispatch_cuda(weights.dtype(), [&](auto zero) {
    query_reads_kernel<<<blocks_for(rows, kWarps), kThreads, 0, stream>>>(pointer<decltype(zero)>(weights), rows, weights.dim(1), near,
                                                                          pointer<double>(reads));
  });
  check_launch();
}

}  // namespace saccade::cuda
