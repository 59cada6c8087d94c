#pragma once
/// The contextualizer on Hopper where a context is a single tile of at most 128 positions and 256 columns: a block holds all of it in
/// shared memory, so that neither W nor M is written.
#include "kernels/cuda/avey/avey_tiles.cuh"
#include "kernels/cuda/device/hopper.cuh"
#include "kernels/engine/tensor.h"
#include "kernels/ops/avey/contextualizer_cuda.h"

namespace saccade::cuda::tiles {

constexpr int kOneTileColumns = 256;

/// All contexts in one launch.
inline Plan whole_plan(const ContextualizerShape& s) {
  return {s.layout,  0, static_cast<int>(s.contexts()), static_cast<int>(s.C()), static_cast<int>(s.r), static_cast<int>(s.first_query()),
          s.own_only};
}

/// Y, its product with the gate, and inverse norms of all rows of Z for the backward.
void contextualize_one_tile(int device, const Plan& p, const Tensor& Z, const Tensor& A, const Tensor& inverse, const Tensor& Y,
                            const avey::Gate& gate);
/// Gradients of Z; in parts_A [groups, C, C] those of A. padding f32 [padded_contexts, pad_rows, r]. columns f32 [groups + pad_rows …, r],
/// or empty: parts of the sum of the gradients' rows.
void contextualize_one_tile_backward(int device, const Plan& p, int groups, const Tensor& Z, const Tensor& inverse, const Tensor& A,
                                     const Tensor& dY, float* parts_A, const Tensor& dZ, bool add, Activation slope, const Tensor& padding,
                                     const Tensor& columns);

namespace one_tile {

constexpr uint32_t kBlock = kTile * 64 * 2;  ///< bytes of 128 rows of 64 columns
constexpr int kMostBlocks = kOneTileColumns / 64;

/// Blocks of 64 columns in shared memory; an even number.
__host__ __device__ constexpr int blocks_of(int r) { return (r + kTile - 1) / kTile * 2; }

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/// First of this lane's pair of columns.
__device__ __forceinline__ int column_of(int n) { return 8 * n + static_cast<int>(threadIdx.x) % 4 * 2; }
/// All columns of 128 positions, by kThreads threads; row_of(position) is −1 where there is none.
template <int kThreads, class RowOf>
__device__ __forceinline__ void copy_context(uint32_t to, const Plan& p, const bf16* x, RowOf&& row_of) {
  constexpr int kRows = kThreads / 8, kTimes = (kTile + kRows - 1) / kRows;
  const bf16* rows[kTimes];
  const int first = static_cast<int>(threadIdx.x) / 8, piece = static_cast<int>(threadIdx.x) % 8;
#pragma unroll
  for (int i = 0; i < kTimes; ++i) {
    const int position = first + kRows * i, row = position < p.C ? row_of(position) : -1;
    rows[i] = row < 0 ? nullptr : x + int64_t{row} * p.r;
  }
  for (int block = 0; block < blocks_of(p.r); ++block)
#pragma unroll
    for (int i = 0; i < kTimes; ++i) {
      const int column = 64 * block + 8 * piece;
      const bool valid = rows[i] != nullptr && column < p.r;
      if (kTile % kRows == 0 || first + kRows * i < kTile)
        copy_async_16(SharedRows<64>{to + static_cast<uint32_t>(block) * kBlock}.at(first + kRows * i, piece), valid ? rows[i] + column : x,
                      valid);
    }
}

/// The same value, of which the compiler keeps no addresses from one context to the next: there are no registers for them.
template <class T>
__device__ __forceinline__ T anew(T value) {
  if constexpr (sizeof(T) == 8)
    asm volatile("" : "+l"(value));
  else
    asm volatile("" : "+r"(value));
  return value;
}

/// This warp among those of its 64 rows, and the first of its lines.
__device__ __forceinline__ int warp_of_rows() { return static_cast<int>(threadIdx.x) % 128 / 32; }
__device__ __forceinline__ int line_of(int rows, int half) {
  return 64 * rows + 16 * warp_of_rows() + 8 * half + static_cast<int>(threadIdx.x) % 32 / 4;
}

/// This lane's pairs of A at keys 8 n … 8 n + 15 of 64 queries and 64 keys.
struct OfPairs {
  float2 a[2][2];
  __device__ OfPairs(const Plan& p, const float* A, int queries, int keys, int n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float* of_t = A + min(line_of(queries, half), p.C - 1) * p.C;
#pragma unroll
      for (int i = 0; i < 2; ++i) a[i][half] = *reinterpret_cast<const float2*>(of_t + min(64 * keys + column_of(n + i), p.C - 2));
    }
  }
};

/// Where a lane points at for eight rows of eight values: of the warp's 16 rows, columns 8 n … 8 n + 15 of a block.
__device__ __forceinline__ uint32_t matrices_at(uint32_t block, int rows, int n) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return SharedRows<64>{block}.at(64 * rows + 16 * warp_of_rows() + lane % 16, n + lane / 16);
}

__device__ __forceinline__ void copies_are_there() {
  copy_async_commit();
  copy_async_wait();
  publish_copies();
  __syncthreads();
}
#endif

}  // namespace one_tile
}  // namespace saccade::cuda::tiles
