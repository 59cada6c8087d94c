#pragma once
/// Products of 64 x 64 tiles from float32 operands in shared memory: for float with float32 multiply-adds, for bf16 on tensor cores with
/// operands rounded to tf32 (11 bits, those of bf16 exactly). Device code only.
#include "kernels/cuda/device/tf32.cuh"

namespace saccade::cuda::tile_sums {

constexpr int kTile = 64, kDepth = 32, kThreads = 256, kStride = kTile + 8;

/// Of kDepth terms: [term][row], [term][column].
struct Operands {
  float a[kDepth][kStride], b[kDepth][kStride];
};

/// Along which index neighbouring threads read: over rows (columns), or over eight terms of each.
enum class Lanes { tile, terms };

/// to[k][at] = value(at, k)
template <class T, Lanes kLanes, class Value>
__device__ __forceinline__ void load(float (&to)[kDepth][kStride], const Value& value) {
#pragma unroll
  for (int i = 0; i < kDepth * kTile / kThreads; ++i) {
    const int item = static_cast<int>(threadIdx.x) + i * kThreads;
    const int k = kLanes == Lanes::tile ? item / kTile : item % 8 + item / (8 * kTile) * 8,
              at = kLanes == Lanes::tile ? item % kTile : item / 8 % kTile;
    to[k][at] = std::is_same_v<T, bf16> ? round_to_tf32(value(at, k)) : value(at, k);
  }
}

/// A thread's sixteen sums of a tile.
template <class T>
struct Sums {
  static constexpr bool kTensorCores = std::is_same_v<T, bf16>;
  float c[16] = {};

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x) / 32; }
  static __device__ __forceinline__ int row(int i) {
    return kTensorCores ? warp() % 4 * 16 + lane() / 4 + i % 4 / 2 * 8 : static_cast<int>(threadIdx.x) / 16 * 4 + i / 4;
  }
  static __device__ __forceinline__ int column(int i) {
    return kTensorCores ? warp() / 4 * 32 + i / 4 * 8 + lane() % 4 * 2 + i % 2 : static_cast<int>(threadIdx.x) % 16 * 4 + i % 4;
  }

  __device__ __forceinline__ void add(const Operands& x) {
    if constexpr (kTensorCores)
      add_on_tensor_cores(x);
    else
      add_plainly(x);
  }

  /// use(row, column, sum)
  template <class Use>
  __device__ __forceinline__ void for_own(const Use& use) const {
#pragma unroll
    for (int i = 0; i < 16; ++i) use(row(i), column(i), c[i]);
  }

 private:
  __device__ __forceinline__ void add_on_tensor_cores(const Operands& x) {
#pragma unroll
    for (int k = 0; k < kDepth; k += 8) {
      const float* rows = &x.a[k + lane() % 4][row(0)];
      const float a[4] = {rows[0], rows[8], rows[4 * kStride], rows[4 * kStride + 8]};
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const float* columns = &x.b[k + lane() % 4][warp() / 4 * 32 + n * 8 + lane() / 4];
        multiply_tf32(c + 4 * n, a, columns[0], columns[4 * kStride]);
      }
    }
  }
  __device__ __forceinline__ void add_plainly(const Operands& x) {
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      const float4 a = *reinterpret_cast<const float4*>(&x.a[k][row(0)]), b = *reinterpret_cast<const float4*>(&x.b[k][column(0)]);
      const float as[4] = {a.x, a.y, a.z, a.w}, bs[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int i = 0; i < 16; ++i) c[i] = fmaf(as[i / 4], bs[i % 4], c[i]);
    }
  }
};

}  // namespace saccade::cuda::tile_sums
