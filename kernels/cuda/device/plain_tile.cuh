#pragma once
/// Products of 64 x 64 tiles without tensor cores, in float32, whose operands are functions: the base of the plain kernels.
#include "kernels/cuda/device/device_code.cuh"

namespace saccade::cuda::plain {

constexpr int kTile = 64, kDepth = 16, kThreads = 256, kOwn = 4, kColumns = kTile / kOwn;

/// A thread owns kOwn rows and columns of a tile.
using Accumulator = float[kOwn][kOwn];
__device__ __forceinline__ int row_of(int i) { return static_cast<int>(threadIdx.x) / kColumns * kOwn + i; }
__device__ __forceinline__ int column_of(int j) { return static_cast<int>(threadIdx.x) % kColumns * kOwn + j; }

struct Workspace {
  float a[kDepth][kTile + kOwn], b[kDepth][kTile + kOwn];
};

/// Which index of an operand is contiguous in memory.
enum class Fast { sum, tile };

template <Fast kFast, class Value>
__device__ __forceinline__ void load(float (&to)[kDepth][kTile + kOwn], int first, int depth, const Value& value) {
#pragma unroll
  for (int i = 0; i < kDepth * kTile / kThreads; ++i) {
    const int item = static_cast<int>(threadIdx.x) + i * kThreads;
    const int k = kFast == Fast::sum ? item % kDepth : item / kTile, at = kFast == Fast::sum ? item / kDepth : item % kTile;
    to[k][at] = first + k < depth ? value(at, first + k) : 0.0f;
  }
}

/// c += Σ_{k < depth} a(row, k) b(column, k). Both are called for all 64 rows and columns.
template <Fast kA, Fast kB, class A, class B>
__device__ __forceinline__ void accumulate(Accumulator& c, Workspace& workspace, int depth, const A& a, const B& b) {
  for (int first = 0; first < depth; first += kDepth) {
    __syncthreads();
    load<kA>(workspace.a, first, depth, a);
    load<kB>(workspace.b, first, depth, b);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      const float4 x = *reinterpret_cast<const float4*>(&workspace.a[k][row_of(0)]),
                   y = *reinterpret_cast<const float4*>(&workspace.b[k][column_of(0)]);
      const float xs[kOwn] = {x.x, x.y, x.z, x.w}, ys[kOwn] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int i = 0; i < kOwn; ++i)
#pragma unroll
        for (int j = 0; j < kOwn; ++j) c[i][j] = fmaf(xs[i], ys[j], c[i][j]);
    }
  }
}

__device__ __forceinline__ void clear(Accumulator& c) {
#pragma unroll
  for (int i = 0; i < kOwn; ++i)
#pragma unroll
    for (int j = 0; j < kOwn; ++j) c[i][j] = 0;
}

/// use(row, column, element) for the thread's own elements.
template <class Use>
__device__ __forceinline__ void for_own(Accumulator& c, const Use& use) {
#pragma unroll
  for (int i = 0; i < kOwn; ++i)
#pragma unroll
    for (int j = 0; j < kOwn; ++j) use(row_of(i), column_of(j), c[i][j]);
}

/// Over the threads that share rows.
__device__ __forceinline__ float row_sum(float x) {
#pragma unroll
  for (int offset = kColumns / 2; offset > 0; offset >>= 1) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}

/// sums[row] += Σ over columns of value(row, column, element); the caller synchronizes before others read.
template <class Value>
__device__ __forceinline__ void add_row_sums(Accumulator& c, float* sums, const Value& value) {
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kOwn; ++j) sum += value(row_of(i), column_of(j), c[i][j]);
    sum = row_sum(sum);
    if (column_of(0) == 0) sums[row_of(i)] += sum;
  }
}

/// *to = or += value
template <class T>
__device__ __forceinline__ void put(T* to, float value, bool add) {
  *to = from_float<T>(add ? to_float(*to) + value : value);
}

}  // namespace saccade::cuda::plain
