#pragma once
/// What the optimizers' steps share: sums in double, the factor of gradient clipping, tables of weights on the device. Device code only.
#include <map>
#include <vector>

#include "kernels/cuda/device/device_code.cuh"

namespace saccade::cuda {

/// Sum over a block of kThreads threads, in every thread, in a fixed order. Safe to call repeatedly.
template <int kThreads>
__device__ double block_sum_double(double x) {
  __shared__ double parts[kThreads / 32];
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) x += __shfl_xor_sync(0xffffffffu, x, offset);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  double sum = 0;
  for (double part : parts) sum += part;
  return sum;
}

/// What a gradient is multiplied by when the norm of all of them may be `clip` at most (0: any).
__device__ __forceinline__ float gradient_scale(double clip, double norm) {
  return static_cast<float>(clip > 0 && norm > clip ? clip / norm : 1.0);
}

/// Rows on the device. Made when `key` is first seen and kept: `key` holds the addresses that the rows name, which never change.
template <class Row>
const Row* device_table(Stream stream, const std::vector<uintptr_t>& key, const std::vector<Row>& rows) {
  static std::map<std::vector<uintptr_t>, Row*> tables;
  Row*& table = tables[key];
  if (!table) {
    check(cudaMalloc(&table, rows.size() * sizeof(Row)));
    check(cudaMemcpyAsync(table, rows.data(), rows.size() * sizeof(Row), cudaMemcpyHostToDevice, stream));
    check(cudaStreamSynchronize(stream));
  }
  return table;
}

}  // namespace saccade::cuda
