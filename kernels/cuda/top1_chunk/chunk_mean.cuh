#pragma once
/// The mean key of a chunk. Device code only.
#include "kernels/cuda/device/device_code.cuh"

namespace saccade::cuda {

constexpr int kMeanGroups = 8, kMeanThreads = 32 * kMeanGroups;

/// Mean position of the keys of a chunk: where ALiBi's bias puts its mean key.
__device__ __forceinline__ float mean_position(int chunk, int keys) {
  return static_cast<float>(int64_t{chunk} * keys) + 0.5f * static_cast<float>(keys - 1);
}

/// Columns per block, kPiece per thread.
template <int kPiece>
constexpr int kMeanColumns = 32 * kPiece;

/// mean = that of `count` rows of `row` elements, in columns [blockIdx.y · kMeanColumns, …). A warp sums every kMeanGroups-th row; then the
/// sums are added in order.
template <int kPiece, class T>
__device__ void mean_of_rows(const T* rows, int64_t row, int64_t count, T* mean) {
  struct alignas(sizeof(T) * kPiece) Piece {
    T v[kPiece];
  };
  __shared__ float sums[kMeanGroups][32][kPiece + 1];
  const int lane = threadIdx.x % 32, group = threadIdx.x / 32;
  const int64_t column = (int64_t{blockIdx.y} * 32 + lane) * kPiece;
  float sum[kPiece] = {};
  if (column < row)
#pragma unroll 4
    for (int64_t j = group; j < count; j += kMeanGroups) {
      const Piece piece = *reinterpret_cast<const Piece*>(rows + j * row + column);
#pragma unroll
      for (int i = 0; i < kPiece; ++i) sum[i] += to_float(piece.v[i]);
    }
#pragma unroll
  for (int i = 0; i < kPiece; ++i) sums[group][lane][i] = sum[i];
  __syncthreads();
  if (group > 0 || column >= row) return;
  Piece out;
#pragma unroll
  for (int i = 0; i < kPiece; ++i) {
    float total = 0;
#pragma unroll
    for (int g = 0; g < kMeanGroups; ++g) total += sums[g][lane][i];
    out.v[i] = from_float<T>(total / static_cast<float>(count));
  }
  *reinterpret_cast<Piece*>(mean + column) = out;
}

/// f(integral_constant of the elements per load of a thread) for rows of that many elements.
template <class T, class F>
void for_mean_piece(int64_t row, F&& f) {
  row % kVector<T> == 0 ? f(std::integral_constant<int, kVector<T>>{}) : f(std::integral_constant<int, 1>{});
}

}  // namespace saccade::cuda
