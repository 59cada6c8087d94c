#pragma once
/// Device code over columns and runs of tokens; see column_runs.h.
#include "kernels/cuda/device/values.cuh"
#include "kernels/ops/shared/column_runs.h"

namespace saccade::cuda {

constexpr int kColumnThreads = 32;
inline dim3 run_block() { return dim3(kColumnThreads, kRuns); }
/// A block takes kColumnThreads · n columns and kPartTokens tokens of one sequence.
inline dim3 run_grid(int64_t columns, int n, int64_t tokens, int64_t sequences = 1) {
  return dim3(blocks_for(columns, kColumnThreads * n), static_cast<unsigned>(run_parts(tokens)), static_cast<unsigned>(sequences));
}

/// What a thread owns.
struct Run {
  int column;
  int64_t first, last;  ///< tokens; last ≤ first: none
  __device__ Run(int n, int64_t tokens)
      : column(static_cast<int>(blockIdx.x * kColumnThreads + threadIdx.x) * n),
        first((int64_t{blockIdx.y} * kRuns + threadIdx.y) * kRunTokens),
        last(min(tokens, first + kRunTokens)) {}
};

/// part[stride · (column …)] = Σ of `mine` over the block's runs, in order. All threads of the block come here.
template <int N>
__device__ __forceinline__ void write_part(float* part, int columns, const Values<N>& mine, int64_t stride = 1) {
  __shared__ float sums[kRuns][kColumnThreads * N];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < N; ++i) sums[threadIdx.y][threadIdx.x * N + i] = mine.v[i];
  __syncthreads();
  const int from = static_cast<int>(blockIdx.x) * kColumnThreads * N;
  for (int i = static_cast<int>(threadIdx.y * kColumnThreads + threadIdx.x); i < kColumnThreads * N && from + i < columns;
       i += kRuns * kColumnThreads) {
    float sum = 0;
#pragma unroll
    for (int r = 0; r < kRuns; ++r) sum += sums[r][i];
    part[(from + i) * stride] = sum;
  }
}

}  // namespace saccade::cuda
