#pragma once
/// Shared by the chunk forms of recurrences on tensor cores: matrices of bf16 in shared memory and their products, in blocks of eight or
/// sixteen warps, chunks of 64 tokens. Each warp has a strip of 16 rows and half (a quarter) of the columns of a product.
#include "kernels/cuda/device/tensor_core.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/ops/shared/chunk_states_cuda.h"

namespace saccade::cuda {

constexpr int kChunkThreads = 256;

/// A matrix with rows of kWidth (a multiple of 16) in shared memory; eight more, so that eight rows lie in different banks.
template <int kWidth>
struct SharedMatrix {
  static constexpr int kStride = kWidth + 8;
  static constexpr int bytes(int rows) { return rows * kStride * 2; }
  bf16* data;

  __device__ __forceinline__ bf16* at(int row, int column) const { return data + row * kStride + column; }
  __device__ __forceinline__ float2 pair(int row, int column) const {
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(at(row, column)));
  }
  __device__ __forceinline__ void put(int row, int column, float x, float y) const {
    *reinterpret_cast<uint32_t*>(at(row, column)) = pack_bf16(x, y);
  }
  /// Rows [0, kRows) from `from`, `stride` elements apart, asynchronously; zeros from row `count` on.
  template <int kRows>
  __device__ __forceinline__ void load(const bf16* from, int64_t stride, int count) const {
    constexpr int kPieces = kWidth / 8;
    for (int item = threadIdx.x; item < kRows * kPieces; item += blockDim.x) {
      const int row = item / kPieces, piece = item % kPieces;
      const bool valid = row < count;
      copy_async_16(shared_address(at(row, piece * 8)), valid ? from + row * stride + piece * 8 : from, valid);
    }
  }
};

/// Allocates consecutive parts of the block's shared memory.
struct SharedPieces {
  char* next;

  template <int kWidth>
  __device__ SharedMatrix<kWidth> matrix(int rows) {
    const SharedMatrix<kWidth> m{reinterpret_cast<bf16*>(next)};
    next += SharedMatrix<kWidth>::bytes(rows);
    return m;
  }
  __device__ float* floats(int count) {
    float* x = reinterpret_cast<float*>(next);
    next += count * 4;
    return x;
  }
};

enum class Form { plain, transposed };

/// c [16 x 8 kTiles] += A B, rows `row` … of A, columns `column` … of B, kInner terms. A is `a` [rows, kInner] or the transpose of
/// `a` [kInner, rows]; B is `b` [kInner, columns] or the transpose of `b` [columns, kInner].
template <Form kA, Form kB, int kInner, int kTiles, int kWidthA, int kWidthB>
__device__ __forceinline__ void add_product(float (&c)[kTiles][4], const SharedMatrix<kWidthA>& a, int row, const SharedMatrix<kWidthB>& b,
                                            int column) {
  static_assert(kTiles % 2 == 0 && kInner % 16 == 0);
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < kInner; k += 16) {
    uint32_t x[4];
    if constexpr (kA == Form::plain)
      load_matrices(x, shared_address(a.at(row + lane % 16, k + lane / 16 * 8)));
    else
      load_matrices_transposed(x, shared_address(a.at(k + lane / 16 * 8 + lane % 8, row + lane / 8 % 2 * 8)));
#pragma unroll
    for (int n = 0; n < kTiles; n += 2) {
      uint32_t y[4];
      if constexpr (kB == Form::plain)
        load_matrices_transposed(y, shared_address(b.at(k + lane % 16, column + 8 * n + lane / 16 * 8)));
      else
        load_matrices(y, shared_address(b.at(column + 8 * n + lane / 16 * 8 + lane % 8, k + lane / 8 % 2 * 8)));
      multiply(c[n], x, y[0], y[1]);
      multiply(c[n + 1], x, y[2], y[3]);
    }
  }
}

/// f(row, column, x, y) for the neighbours (row, column), (row, column + 1) of this thread.
template <int kTiles, class F>
__device__ __forceinline__ void each_pair(float (&c)[kTiles][4], int row, int column, F&& f) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < kTiles; ++n)
#pragma unroll
    for (int i = 0; i < 2; ++i) f(row + lane / 4 + 8 * i, column + 8 * n + lane % 4 * 2, c[n][2 * i], c[n][2 * i + 1]);
}

/// body(accumulators of zeros, row, column) for the warp's parts of a product [kRows, kColumns], by kThreads threads.
template <int kRows, int kColumns, int kThreads = kChunkThreads, class Body>
__device__ __forceinline__ void for_parts(Body&& body) {
  constexpr int kCuts = kThreads / 128;  // of the columns
  static_assert(kRows % 16 == 0 && kColumns % (16 * kCuts) == 0);
  for (int part = threadIdx.x / 32; part < kRows / 16 * kCuts; part += kThreads / 32) {
    float c[kColumns / kCuts / 8][4] = {};
    body(c, part % (kRows / 16) * 16, part / (kRows / 16) * (kColumns / kCuts));
  }
}

/// p, p[1] (+)= x, y
__device__ __forceinline__ void store_pair(bf16* p, float x, float y, bool add = false) {
  if (add) {
    const float2 old = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(p));
    x += old.x, y += old.y;
  }
  *reinterpret_cast<uint32_t*>(p) = pack_bf16(x, y);
}

constexpr int kSquareStride = kChunkTokens + 4;  ///< row stride of a [64, 64] matrix of floats
constexpr int kSquareFloats = kChunkTokens * kSquareStride;

/// t = (I + a)⁻¹ on and below the diagonal, a [64, 64] below it; what stands above is workspace (the UT transform's inverse,
/// arXiv:2412.06464, section 3.3). 16 x 16 by substitution, then t21 = −t22 a21 t11 twice, all in float32: powers of a would overflow where
/// keys resemble each other. By the whole block; ends behind a barrier.
__device__ __forceinline__ void invert_unit_lower(const float* a, float* t) {
  constexpr int S = kSquareStride;
  const int thread = threadIdx.x;
  if (thread < kChunkTokens) {
    const int corner = thread / 16 * 16, j = thread % 16;
    float column[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      float x = i == j ? 1.0f : 0.0f;
#pragma unroll
      for (int k = 0; k < i; ++k) x -= a[(corner + i) * S + corner + k] * column[k];
      column[i] = x;
      t[(corner + i) * S + corner + j] = x;
    }
  }
  __syncthreads();
  const auto merge = [&](int size, int corner, int i, int j, auto width) {  // outputs (i, j …)
    constexpr int kWidth = decltype(width)::value;
    const int below = corner + size;
    float x[kWidth] = {};
    for (int k = 0; k < size; ++k) {
      const float from = a[(below + i) * S + corner + k];
#pragma unroll
      for (int n = 0; n < kWidth; ++n) x[n] += from * (k >= j + n ? t[(corner + k) * S + corner + j + n] : 0.0f);
    }
#pragma unroll
    for (int n = 0; n < kWidth; ++n) t[(corner + i) * S + below + j + n] = x[n];
    __syncthreads();
#pragma unroll
    for (int n = 0; n < kWidth; ++n) x[n] = 0;
    for (int k = 0; k <= i; ++k) {
      const float from = t[(below + i) * S + below + k];
#pragma unroll
      for (int n = 0; n < kWidth; ++n) x[n] -= from * t[(corner + k) * S + below + j + n];
    }
#pragma unroll
    for (int n = 0; n < kWidth; ++n) t[(below + i) * S + corner + j + n] = x[n];
    __syncthreads();
  };
  merge(16, thread / 128 * 32, thread % 128 / 8, thread % 8 * 2, std::integral_constant<int, 2>{});
  merge(32, 0, thread / 8, thread % 8 * 4, std::integral_constant<int, 4>{});
}

template <class Kernel, class... Arguments>
void launch_chunks(Stream stream, Kernel kernel, int blocks, int threads, int shared, const Arguments&... arguments) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), shared, stream>>>(arguments...);
  check_launch();
}

}  // namespace saccade::cuda
