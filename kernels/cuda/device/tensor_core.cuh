#pragma once
/// Matrix tiles on tensor cores (mma.sync m16n8k16, sm_80 and up): shared-memory tiles, asynchronous copies, fragments.
#include "kernels/cuda/device/device_code.cuh"

namespace saccade::cuda {

__device__ __forceinline__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

/// Copies 16 bytes to shared memory asynchronously; zeros when not valid (then the source is not read).
__device__ __forceinline__ void copy_async_16(uint32_t to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}
__device__ __forceinline__ void copy_async_4(uint32_t to, const void* from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(valid ? 4 : 0) : "memory");
}
__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ __forceinline__ void copy_async_wait() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }

__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}
__device__ __forceinline__ void load_matrices_transposed(uint32_t (&r)[4], uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
}

/// c [16 x 8] += a [16 x 16] b [16 x 8]
__device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  uint32_t r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

__device__ __forceinline__ float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Over the four lanes that hold one row of an accumulator.
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/// Rows of D bf16 in shared memory, the 16-byte pieces of a row permuted so that eight rows of a matrix lie in different banks.
template <int D>
struct SharedRows {
  static constexpr int kPieces = D / 8;
  uint32_t base;

  __device__ uint32_t at(int row, int piece) const {
    const int swizzle = kPieces >= 8 ? row & 7 : (kPieces == 4 ? row >> 1 & 3 : row >> 2 & 1);
    return base + static_cast<uint32_t>(row * D * 2 + (piece ^ swizzle) * 16);
  }
  /// A of the product: rows [row, row + 16), columns [16 k, 16 k + 16).
  __device__ void load_a(uint32_t (&r)[4], int row, int k) const {
    const int lane = threadIdx.x % 32;
    load_matrices(r, at(row + lane % 16, 2 * k + lane / 16));
  }
  /// B of x yᵀ, y these rows: r[0], r[1] for rows [row, row + 8), r[2], r[3] for the next eight; columns as above.
  __device__ void load_b(uint32_t (&r)[4], int row, int k) const {
    const int lane = threadIdx.x % 32;
    load_matrices(r, at(row + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
  }
  /// B of x y: sums over rows [row, row + 16); r[0], r[1] for columns [16 n, 16 n + 8), r[2], r[3] for the next eight.
  __device__ void load_b_transposed(uint32_t (&r)[4], int row, int n) const {
    const int lane = threadIdx.x % 32;
    load_matrices_transposed(r, at(row + lane % 16, 2 * n + lane / 16));
  }

  /// Copies rows [0, kCount) with kThreads threads; source(row) is the row's address, null for a row of zeros.
  template <int kCount, int kThreads, class Source>
  __device__ void fill(const bf16* some_address, Source&& source) const {
    static_assert(kCount * kPieces % kThreads == 0);
#pragma unroll
    for (int i = 0; i < kCount * kPieces / kThreads; ++i) {
      const int item = static_cast<int>(threadIdx.x) + i * kThreads, row = item / kPieces, piece = item % kPieces;
      const bf16* from = source(row);
      copy_async_16(at(row, piece), from ? from + piece * 8 : some_address, from != nullptr);
    }
  }
};

/// Copies rows position(0 … kCount − 1) of x and y, `stride` elements apart, with kThreads threads; a row of zeros where −1.
template <int kCount, int kThreads, int D, class Position>
__device__ __forceinline__ void fill_pair(const SharedRows<D>& to_x, const SharedRows<D>& to_y, const bf16* x, const bf16* y, int stride,
                                          Position&& position) {
  constexpr int kPieces = SharedRows<D>::kPieces;
  static_assert(kCount * kPieces % kThreads == 0);
#pragma unroll
  for (int i = 0; i < kCount * kPieces / kThreads; ++i) {
    const int item = static_cast<int>(threadIdx.x) + i * kThreads, row = item / kPieces, piece = item % kPieces, p = position(row);
    const int64_t offset = int64_t{max(p, 0)} * stride + piece * 8;
    const uint32_t at = to_x.at(row, piece);
    copy_async_16(at, x + offset, p >= 0);
    copy_async_16(at + (to_y.base - to_x.base), y + offset, p >= 0);
  }
}

/// c [16 kM x 8 kN] += a bᵀ with b = rows [row, row + 8 kN) of `rows`, over all D columns; a in fragments.
template <int kM, int kN, int D>
__device__ __forceinline__ void multiply_rows(float (&c)[kM][kN][4], const uint32_t (&a)[kM][D / 16][4], const SharedRows<D>& rows,
                                              int row) {
#pragma unroll
  for (int k = 0; k < D / 16; ++k)
#pragma unroll
    for (int n = 0; n < kN; n += 2) {
      uint32_t b[4];
      rows.load_b(b, row + 8 * n, k);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply(c[m][n], a[m][k], b[0], b[1]);
        multiply(c[m][n + 1], a[m][k], b[2], b[3]);
      }
    }
}

/// c [16 kM x D] += p y with y = rows [row, row + 8 kN) of `rows`; p as accumulators, rounded to bf16.
template <int kM, int kN, int D>
__device__ __forceinline__ void multiply_weights(float (&c)[kM][D / 8][4], const float (&p)[kM][kN][4], const SharedRows<D>& rows,
                                                 int row) {
#pragma unroll
  for (int k = 0; k < kN / 2; ++k) {
    uint32_t a[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) a[m][i] = pack_bf16(p[m][2 * k + i / 2][i % 2 * 2], p[m][2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
    for (int n = 0; n < D / 16; ++n) {
      uint32_t b[4];
      rows.load_b_transposed(b, row + 16 * k, n);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply(c[m][2 * n], a[m], b[0], b[1]);
        multiply(c[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

template <int kM, int kN>
__device__ __forceinline__ void clear(float (&c)[kM][kN][4]) {
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) c[m][n][i] = 0;
}

}  // namespace saccade::cuda
