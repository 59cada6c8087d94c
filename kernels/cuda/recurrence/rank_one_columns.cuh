#pragma once
/// Columns of a state in the registers of a warp (plain form of rank_one_recurrence.h), and a token's update of them.
#include "kernels/cuda/device/elements.cuh"
#include "kernels/ops/shared/rank_one_recurrence_cuda.h"

namespace saccade::cuda {

struct RankOneSizes {
  int length, heads, keys, values;
  int piece, pieces;
  int64_t rows;

  explicit RankOneSizes(const RankOneShape& s)
      : length(static_cast<int>(s.length)),
        heads(static_cast<int>(s.heads)),
        keys(static_cast<int>(s.keys)),
        values(static_cast<int>(s.values)),
        piece(static_cast<int>(std::min(s.length, RankOneShape::kPiece))),
        pieces(static_cast<int>(s.pieces())),
        rows(s.rows()) {}
  /// Row of token t of head h of sequence b, batch_head = b H + h.
  __device__ int64_t row(int batch_head, int t) const { return (int64_t{batch_head / heads} * length + t) * heads + batch_head % heads; }
};

constexpr int kColumns = 4;

template <int kOwn>
struct Vectors {
  float r[kOwn] = {}, w[kOwn] = {}, a[kOwn] = {}, b[kOwn] = {}, k[kOwn] = {};

  template <class Source>
  __device__ __forceinline__ void load(const Source& source, const RankOneSizes& n, int64_t row) {
    const auto token = source.token(row);
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int c = static_cast<int>(threadIdx.x) % 32 + 32 * i;
      if (c < n.keys) source.fill(token, row * n.keys + c, r[i], w[i], a[i], b[i], k[i]);
    }
  }
};

/// kColumns columns of a state and of a token's update.
template <int kOwn>
struct Columns {
  float s[kColumns][kOwn] = {};
  int first, count;  ///< columns first … first + count − 1 exist

  __device__ Columns(int first_column, int values) : first(first_column), count(min(kColumns, values - first_column)) {}

  /// of a state [K, V]
  __device__ void load(const float* state, const RankOneSizes& n) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
#pragma unroll
      for (int i = 0; i < kOwn; ++i)
        if (j < count && lane + 32 * i < n.keys) s[j][i] = state[int64_t{lane + 32 * i} * n.values + first + j];
  }
  /// to a state [K, V]
  __device__ void store(float* state, const RankOneSizes& n, bool add) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
#pragma unroll
      for (int i = 0; i < kOwn; ++i)
        if (j < count && lane + 32 * i < n.keys) {
          float& to = state[int64_t{lane + 32 * i} * n.values + first + j];
          to = add ? to + s[j][i] : s[j][i];
        }
  }
  /// Workspace [V, K]
  __device__ void load_scratch(const float* state, const RankOneSizes& n) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
#pragma unroll
      for (int i = 0; i < kOwn; ++i)
        if (j < count && lane + 32 * i < n.keys) s[j][i] = state[int64_t{first + j} * n.keys + lane + 32 * i];
  }
  __device__ void store_scratch(float* state, const RankOneSizes& n) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
#pragma unroll
      for (int i = 0; i < kOwn; ++i)
        if (j < count && lane + 32 * i < n.keys) state[int64_t{first + j} * n.keys + lane + 32 * i] = s[j][i];
  }
  /// x_j = column j of x at a row of values
  __device__ void values(const Elements& x, const RankOneSizes& n, int64_t row, float (&out)[kColumns]) const {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) out[j] = x && j < count ? x[row * n.values + first + j] : 0.0f;
  }
  /// S_{t−1}ᵀ a
  __device__ void along(const float (&a)[kOwn], float (&out)[kColumns]) const {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < kOwn; ++i) sum += a[i] * s[j][i];
      out[j] = warp_sum(sum);
    }
  }
  __device__ void advance(const Vectors<kOwn>& x, const float (&removed)[kColumns], const float (&v)[kColumns]) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
#pragma unroll
      for (int i = 0; i < kOwn; ++i) s[j][i] = x.w[i] * s[j][i] + (x.b[i] * removed[j] + x.k[i] * v[j]);
  }
};

}  // namespace saccade::cuda
