#pragma once
/// The contextualizer on Hopper where a context is a single tile of at most 128 positions and 256 columns: a block holds all of it in
/// shared memory, so that neither W nor M is written.
#include "kernels/cuda/avey_contextualizer.h"
#include "kernels/cuda/avey_tiles.cuh"
#include "kernels/tensor.h"

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
/// Gradients of Z; in parts_A [groups, C, C] those of A. padding f32 [padded_contexts, pad_rows, r]. columns f32 [parts, r], or empty:
/// parts of the sum of the gradients' rows.
void contextualize_one_tile_backward(int device, const Plan& p, int groups, const Tensor& Z, const Tensor& inverse, const Tensor& A,
                                     const Tensor& dY, float* parts_A, const Tensor& dZ, bool add, Activation slope, const Tensor& padding,
                                     const Tensor& columns);

namespace one_tile {

constexpr uint32_t kBlock = kTile * 64 * 2;  ///< bytes of 128 rows of 64 columns
constexpr int kMostBlocks = kOneTileColumns / 64;

/// Blocks of 64 columns in shared memory; an even number.
__host__ __device__ constexpr int blocks_of(int r) { return (r + kTile - 1) / kTile * 2; }

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/// Where this thread's lines and columns of a warpgroup's 64 x 128 sums are.
__device__ __forceinline__ int group() { return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0); }
__device__ __forceinline__ int line(int half) {
  return static_cast<int>(threadIdx.x) / 32 * 16 + 8 * half + static_cast<int>(threadIdx.x) % 32 / 4;
}
__device__ __forceinline__ int column_of(int n) { return 8 * n + static_cast<int>(threadIdx.x) % 4 * 2; }
/// All columns of 128 positions; row_of(position) is −1 where there is none.
template <class RowOf>
__device__ __forceinline__ void copy_context(uint32_t to, const Plan& p, const bf16* x, RowOf&& row_of) {
  const bf16* rows[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int position = static_cast<int>(threadIdx.x) / 8 + 32 * i, row = position < p.C ? row_of(position) : -1;
    rows[i] = row < 0 ? nullptr : x + int64_t{row} * p.r;
  }
  for (int block = 0; block < blocks_of(p.r); ++block)
    copy_rows(to + static_cast<uint32_t>(block) * kBlock, x, 64 * block, p.r, [&](int, int i) { return rows[i]; });
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
