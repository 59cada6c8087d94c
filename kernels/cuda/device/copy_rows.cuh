#pragma once
/// Asynchronous copies of rows to shared memory, with little address arithmetic.
#include "kernels/cuda/device/tensor_core.cuh"

namespace saccade::cuda {

/// Waits until all but the last kGroups groups of copies are complete.
template <int kGroups>
__device__ __forceinline__ void copy_async_wait_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

/// Copies kCount rows `stride` elements apart with kThreads threads; zeros for rows from `size` on and columns from `width` on.
template <int kCount, int kThreads, int D>
__device__ __forceinline__ void copy_rows(const SharedRows<D>& to, const bf16* from, int64_t stride, int size, int width = D) {
  constexpr int kPieces = SharedRows<D>::kPieces, kStep = kThreads / kPieces;
  const int row = static_cast<int>(threadIdx.x) / kPieces, piece = static_cast<int>(threadIdx.x) % kPieces;
  const uint32_t first = to.at(row, piece);
  from += row * stride + piece * 8;
  if (piece * 8 >= width) size = 0;
  if (kStep > kCount && row >= kCount) return;
#pragma unroll
  for (int i = 0; i < (kCount + kStep - 1) / kStep; ++i) {
    // Rows a multiple of eight apart have their pieces in the same order.
    const uint32_t at = kStep % 8 == 0 ? first + static_cast<uint32_t>(i * kStep * D * 2) : to.at(row + i * kStep, piece);
    copy_async_16(at, from, row + i * kStep < size);
    from += kStep * stride;
  }
}

}  // namespace saccade::cuda
