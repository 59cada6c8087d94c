#pragma once
/// Kernels of the plain form (rank_one_recurrence.h). A Source gives r, w, a, b, k of a token:
///   token(row) reads what is common to all channels, fill(token, at, …) gives one channel, at = row K + channel.
/// A warp owns kColumns columns of the state, its lanes the channels lane, lane + 32, …
#include "kernels/cuda/device/lane_sums.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/cuda/recurrence/rank_one_columns.cuh"
#include "kernels/engine/expect.h"

namespace saccade::cuda {

constexpr int kForwardWarps = 4;

/// Block (x, y): kForwardWarps kColumns columns of (sequence, head) y.
template <class Source, int kOwn>
__global__ void __launch_bounds__(32 * kForwardWarps)
    rank_one_forward_kernel(RankOneSizes n, Source source, Elements v, const float* start, Elements y, float* end) {
  const int batch_head = blockIdx.y, column = (blockIdx.x * kForwardWarps + threadIdx.x / 32) * kColumns;
  if (column >= n.values) return;
  const int64_t state = int64_t{batch_head} * n.keys * n.values;
  Columns<kOwn> columns(column, n.values);
  if (start) columns.load(start + state, n);
  Vectors<kOwn> x, next;
  float value[kColumns], next_value[kColumns], removed[kColumns], out[kColumns];
  next.load(source, n, n.row(batch_head, 0));
  columns.values(v, n, n.row(batch_head, 0), next_value);
  for (int t = 0; t < n.length; ++t) {
    x = next;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) value[j] = next_value[j];
    if (t + 1 < n.length) {
      next.load(source, n, n.row(batch_head, t + 1));
      columns.values(v, n, n.row(batch_head, t + 1), next_value);
    }
    columns.along(x.a, removed);
    columns.advance(x, removed, value);
    columns.along(x.r, out);
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
      if (y && threadIdx.x % 32 == j && j < columns.count) y.set(n.row(batch_head, t) * n.values + column + j, out[j]);
  }
  if (end) columns.store(end + state, n, false);
}

/// Arguments of the backward pass besides the source.
struct RankOneBackward {
  Elements v, dy;
  const float *start, *d_end;
  ElementsTarget dv;
  float* d_start;
  bool add_to_start;
  float *starts, *inside, *parts;

  RankOneBackward(const Tensor& values, const Tensor& d_output, const Tensor& start_state, const Tensor& d_end_state,
                  const GradTarget& d_values, const GradTarget& d_start_state, const RankOneScratch& scratch)
      : v(elements(values)),
        dy(elements(d_output)),
        start(pointer_or_null<float>(start_state)),
        d_end(pointer_or_null<float>(d_end_state)),
        dv(elements(d_values)),
        d_start(pointer_or_null<float>(d_start_state.tensor)),
        add_to_start(d_start_state.add),
        starts(pointer<float>(scratch.starts)),
        inside(pointer<float>(scratch.inside)),
        parts(pointer<float>(scratch.parts)) {}
};

/// With D the gradient of S_t: D += r dyᵀ, dr = S_t dy, dk = D v, dv = Dᵀ k, db = D x with x = S_{t−1}ᵀ a, dx = Dᵀ b, da = S_{t−1} dx,
/// d log w = w Σ_v D ∘ S_{t−1}; then D ← w D + a dxᵀ. `sums`: this warp's part of dr, d log w, da, db, dk.
template <int kOwn>
__device__ __forceinline__ void take_back(const Vectors<kOwn>& x, const Columns<kOwn>& before, const float (&v)[kColumns],
                                          const float (&dy)[kColumns], Columns<kOwn>& d, float (&dv)[kColumns], float* sums, int keys) {
  float removed[kColumns], d_removed[kColumns];
  before.along(x.a, removed);
#pragma unroll
  for (int j = 0; j < kColumns; ++j)
#pragma unroll
    for (int i = 0; i < kOwn; ++i) d.s[j][i] += x.r[i] * dy[j];
  d.along(x.k, dv);
  d.along(x.b, d_removed);
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    float dr = 0, dw = 0, da = 0, db = 0, dk = 0;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const float s = before.s[j][i], g = d.s[j][i];
      dr += (x.w[i] * s + (x.b[i] * removed[j] + x.k[i] * v[j])) * dy[j];
      dw += g * s;
      da += s * d_removed[j];
      db += g * removed[j];
      dk += g * v[j];
      d.s[j][i] = x.w[i] * g + x.a[i] * d_removed[j];
    }
    const int c = static_cast<int>(threadIdx.x) % 32 + 32 * i;
    if (c < keys) {
      sums[c] = dr;
      sums[keys + c] = dw * x.w[i];
      sums[2 * keys + c] = da;
      sums[3 * keys + c] = db;
      sums[4 * keys + c] = dk;
    }
  }
}

/// Block (x, y): group x of the columns of (sequence, head) y.
template <class Source, int kOwn>
__global__ void __launch_bounds__(512) rank_one_backward_kernel(RankOneSizes n, Source source, RankOneBackward p) {
  extern __shared__ float sums[];  // [warps, 5 K]
  const int batch_head = blockIdx.y, warp = threadIdx.x / 32, warps = blockDim.x / 32, all = 5 * n.keys;
  const int column = min((static_cast<int>(blockIdx.x) * warps + warp) * kColumns, n.values);
  const int64_t size = int64_t{n.keys} * n.values;
  float *starts = p.starts + batch_head * n.pieces * size, *inside = p.inside + batch_head * n.piece * size;
  float* parts = p.parts + blockIdx.x * n.rows * all;
  Vectors<kOwn> x;
  float value[kColumns], dy[kColumns], other[kColumns];
  Columns<kOwn> s(column, n.values), d(column, n.values);
  const auto advance = [&](int t) {
    x.load(source, n, n.row(batch_head, t));
    s.values(p.v, n, n.row(batch_head, t), value);
    s.along(x.a, other);
    s.advance(x, other, value);
  };
  if (p.start) s.load(p.start + batch_head * size, n);
  for (int piece = 0; piece < n.pieces; ++piece) {
    s.store_scratch(starts + piece * size, n);
    for (int t = piece * n.piece; piece + 1 < n.pieces && t < (piece + 1) * n.piece; ++t) advance(t);
  }
  if (p.d_end) d.load(p.d_end + batch_head * size, n);
  for (int piece = n.pieces - 1; piece >= 0; --piece) {
    const int first = piece * n.piece, last = min(first + n.piece, n.length) - 1;
    s.load_scratch(starts + piece * size, n);
    for (int t = first; t <= last; ++t) {
      s.store_scratch(inside + (t - first) * size, n);
      if (t < last) advance(t);
    }
    for (int t = last; t >= first; --t) {
      const int64_t row = n.row(batch_head, t);
      x.load(source, n, row);
      s.load_scratch(inside + (t - first) * size, n);
      s.values(p.v, n, row, value);
      s.values(p.dy, n, row, dy);
      take_back(x, s, value, dy, d, other, sums + warp * all, n.keys);
#pragma unroll
      for (int j = 0; j < kColumns; ++j)
        if (threadIdx.x % 32 == j && j < s.count) p.dv.put(row * n.values + column + j, other[j]);
      __syncthreads();
      for (int i = threadIdx.x; i < all; i += blockDim.x) {
        float sum = 0;
        for (int w = 0; w < warps; ++w) sum += sums[w * all + i];
        parts[row * all + i] = sum;
      }
      __syncthreads();
    }
  }
  if (p.d_start) d.store(p.d_start + batch_head * size, n, p.add_to_start);
}

constexpr int kQueries = 4;

/// A warp owns kQueries queries of a head of the sequences from `first` on: with p = r_t and for j = t … 0: weight = p · k_j,
/// p ← w_j ∘ p + a_j (b_j · p).
template <class Source, int kOwn>
__global__ void __launch_bounds__(128) rank_one_weights_kernel(RankOneSizes n, Source source, int first, float* weights) {
  const int query = static_cast<int>(blockIdx.x * 4 + threadIdx.x / 32) * kQueries, lane = threadIdx.x % 32;
  const int map = blockIdx.y, batch_head = first * n.heads + map, end = min(n.length, query + kQueries);
  if (query >= n.length) return;
  float* rows = weights + (int64_t{map} * n.length + query) * n.length;
  Vectors<kOwn> x;
  float p[kQueries][kOwn] = {};  // zero until a query's own token
  for (int j = end - 1; j >= 0; --j) {
    x.load(source, n, n.row(batch_head, j));
    float dots[2 * kQueries] = {};  // weights, then b · p
#pragma unroll
    for (int t = 0; t < kQueries; ++t)
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        if (j == query + t) p[t][i] = x.r[i];
        dots[t] += p[t][i] * x.k[i], dots[kQueries + t] += p[t][i] * x.b[i];
      }
    lane_sums<2 * kQueries, 16, 1>(dots);  // the i-th on the i-th group of lanes
    constexpr int kGroup = 32 / (2 * kQueries);
    const int own = lane / kGroup;
    if (lane % kGroup == 0 && query + own < end) rows[int64_t{own} * n.length + j] = dots[0];
#pragma unroll
    for (int t = 0; t < kQueries; ++t) {
      const float along = __shfl_sync(0xffffffffu, dots[0], (kQueries + t) * kGroup);
#pragma unroll
      for (int i = 0; i < kOwn; ++i) p[t][i] = x.w[i] * p[t][i] + x.a[i] * along;
    }
  }
  for (int t = 0; query + t < end; ++t)
    for (int j = end + lane; j < n.length; j += 32) rows[int64_t{t} * n.length + j] = 0;
}

/// f(std::integral_constant<int, channels of a lane>)
template <class F>
void with_own_channels(const char* op, int64_t keys, F&& f) {
  expect(keys <= RankOneShape::kMostKeys, op, "keys have ", keys, " values, on CUDA at most ", RankOneShape::kMostKeys);
  if (keys <= 32) return f(std::integral_constant<int, 1>{});
  if (keys <= 64) return f(std::integral_constant<int, 2>{});
  if (keys <= 96) return f(std::integral_constant<int, 3>{});
  if (keys <= 128) return f(std::integral_constant<int, 4>{});
  f(std::integral_constant<int, 8>{});
}

template <class Source>
void rank_one_forward(Stream stream, const char* op, const RankOneShape& shape, const Source& source, const Tensor& v, const Tensor& start,
                      const Tensor& y, const Tensor& end) {
  const dim3 grid(blocks_for(shape.values, kForwardWarps * kColumns), static_cast<unsigned>(shape.batch_heads()));
  with_own_channels(op, shape.keys, [&](auto own) {
    rank_one_forward_kernel<Source, own()><<<grid, 32 * kForwardWarps, 0, stream>>>(
        RankOneSizes(shape), source, elements(v), pointer_or_null<float>(start), elements(y), pointer_or_null<float>(end));
  });
  check_launch();
}

template <class Source>
void rank_one_backward(Stream stream, const char* op, const RankOneShape& shape, const Source& source, const RankOneBackward& p) {
  const int64_t warps = (shape.values + shape.groups() * kColumns - 1) / (shape.groups() * kColumns);
  const dim3 grid(static_cast<unsigned>(shape.groups()), static_cast<unsigned>(shape.batch_heads()));
  const auto shared = static_cast<int>(warps * RankOneShape::kVectors * shape.keys * 4);
  with_own_channels(op, shape.keys, [&](auto own) {
    const auto kernel = rank_one_backward_kernel<Source, own()>;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    kernel<<<grid, static_cast<unsigned>(32 * warps), shared, stream>>>(RankOneSizes(shape), source, p);
  });
  check_launch();
}

template <class Source>
void rank_one_weights(Stream stream, const char* op, const RankOneShape& shape, const Source& source, const Sequences& sequences,
                      const Tensor& weights) {
  const dim3 grid(blocks_for(shape.length, 4 * kQueries), static_cast<unsigned>(sequences.count * shape.heads));
  with_own_channels(op, shape.keys, [&](auto own) {
    rank_one_weights_kernel<Source, own()>
        <<<grid, 128, 0, stream>>>(RankOneSizes(shape), source, static_cast<int>(sequences.first), pointer<float>(weights));
  });
  check_launch();
}

}  // namespace saccade::cuda
