#pragma once
/// Products of 128 x 128 tiles on tensor cores for the contextualizer, and where the rows of a context are. A block of eight
/// warps owns a tile; operands come in steps of 64 along the sum, copied kStages − 1 steps ahead.
#include "kernels/cuda/avey/avey_layout.cuh"
#include "kernels/cuda/device/tensor_core.cuh"
#include "kernels/cuda/device/tma.cuh"
#include "kernels/cuda/device/warpgroup.cuh"
#include "kernels/ops/elementwise/elementwise.h"

namespace saccade::cuda::tiles {

constexpr int kTile = 128, kDepth = 64, kStages = 3, kThreads = 256;
constexpr uint32_t kPart = kTile * kDepth * 2;  ///< bytes of one operand of one step

/// Two warpgroups own 64 rows each (wgmma), where the GPU has them; else warps own 64 x 32 (mma).
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr bool kWarpgroups = true;
#else
constexpr bool kWarpgroups = false;
#endif

/// A thread's elements: kLines lines with kPairs pairs of columns each.
constexpr int kLines = kWarpgroups ? 2 : 8, kPairs = 32 / kLines;
/// Warps that share a line of the tile, or a column.
constexpr int kLineWarps = kWarpgroups ? 1 : 4, kColumnWarps = kWarpgroups ? 8 : 2;
using Accumulator = float[64];

/// First element of a pair in the accumulator.
__device__ __forceinline__ constexpr int element(int line, int pair) {
  return kWarpgroups ? pair * 4 + line * 2 : line / 2 * 16 + pair * 4 + line % 2 * 2;
}
__device__ __forceinline__ int warp_row() { return static_cast<int>(threadIdx.x) / 128 * 64; }
__device__ __forceinline__ int warp_column() { return static_cast<int>(threadIdx.x) / 32 % 4 * 32; }
__device__ __forceinline__ int tile_row(int line) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return kWarpgroups ? static_cast<int>(threadIdx.x) / 32 * 16 + line * 8 + lane / 4 : warp_row() + line * 8 + lane / 4;
}
__device__ __forceinline__ int tile_column(int pair) {
  return (kWarpgroups ? 0 : warp_column()) + 8 * pair + static_cast<int>(threadIdx.x) % 4 * 2;
}
/// Among the warps that share a line, or a column.
__device__ __forceinline__ int warp_of_line() { return kWarpgroups ? 0 : static_cast<int>(threadIdx.x) / 32 % 4; }
__device__ __forceinline__ int warp_of_column() { return static_cast<int>(threadIdx.x) / (kWarpgroups ? 32 : 128); }

/// 64 rows of 128 columns: two tiles of 64 columns.
struct SharedHalves {
  uint32_t base;
  __device__ uint32_t at(int row, int piece) const {
    return SharedRows<kDepth>{base + static_cast<uint32_t>(piece / 8) * (kPart / 2)}.at(row, piece % 8);
  }
};

/// Columns 16 n … of the tile += a b, with warps of 64 x 32.
__device__ __forceinline__ void multiply_pair(Accumulator& c, int n, const uint32_t (&a)[4][4], const uint32_t (&b)[4]) {
#pragma unroll
  for (int m = 0; m < 4; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      multiply(*reinterpret_cast<float(*)[4]>(c + m * 16 + (2 * n + half) * 4), a[m], b[2 * half], b[2 * half + 1]);
}

/// A tile of 128 rows, 64 along the sum, as the left operand.
__device__ __forceinline__ void load_left(uint32_t (&a)[4][4], uint32_t tile, int k) {
#pragma unroll
  for (int m = 0; m < 4; ++m) SharedRows<kDepth>{tile}.load_a(a[m], warp_row() + 16 * m, k);
}
/// The same from 64 rows along the sum, 128 columns.
__device__ __forceinline__ void load_left_transposed(uint32_t (&a)[4][4], uint32_t tile, int k) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < 4; ++m)
    load_matrices_transposed(a[m], SharedHalves{tile}.at(16 * k + lane / 16 * 8 + lane % 8, (warp_row() + 16 * m) / 8 + lane / 8 % 2));
}

/// c += x yᵀ and, where kTwo, d += x2 yᵀ; all of 128 rows, 64 along the sum.
template <bool kTwo>
__device__ __forceinline__ void multiply_rows(Accumulator& c, Accumulator& d, uint32_t x, uint32_t x2, uint32_t y) {
  if constexpr (kWarpgroups) {
    const uint32_t rows = threadIdx.x / 128 * (kPart / 2);
    begin_products();
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      multiply_background<false, false>(c, descriptor(x + rows + 32 * k, 16), descriptor(y + 32 * k, 16), false);
      if constexpr (kTwo) multiply_background<false, false>(d, descriptor(x2 + rows + 32 * k, 16), descriptor(y + 32 * k, 16), false);
    }
    end_products();
    wait_products<0>();
  } else {
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      uint32_t b[2][4], a[4][4];
#pragma unroll
      for (int n = 0; n < 2; ++n) SharedRows<kDepth>{y}.load_b(b[n], warp_column() + 16 * n, k);
      load_left(a, x, k);
#pragma unroll
      for (int n = 0; n < 2; ++n) multiply_pair(c, n, a, b[n]);
      if constexpr (kTwo) {
        load_left(a, x2, k);
#pragma unroll
        for (int n = 0; n < 2; ++n) multiply_pair(d, n, a, b[n]);
      }
    }
  }
}

/// c += x y, or xᵀ y; x 128 x 64 (64 x 128), y 64 x 128.
template <bool kTransposed>
__device__ __forceinline__ void multiply_columns(Accumulator& c, uint32_t x, uint32_t y) {
  if constexpr (kWarpgroups) {
    const uint32_t rows = threadIdx.x / 128 * (kPart / 2);
    begin_products();
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k)
      multiply_background<kTransposed, true>(c, descriptor(x + rows + (kTransposed ? 2048 : 32) * k, kPart / 2),
                                             descriptor(y + 2048 * k, kPart / 2), false);
    end_products();
    wait_products<0>();
  } else {
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      uint32_t a[4][4], b[4];
      if constexpr (kTransposed)
        load_left_transposed(a, x, k);
      else
        load_left(a, x, k);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        load_matrices_transposed(b, SharedHalves{y}.at(16 * k + lane % 16, warp_column() / 8 + 2 * n + lane / 16));
        multiply_pair(c, n, a, b);
      }
    }
  }
}

/// Copies 128 rows x 64 columns; source(row) is its first element or null, columns from `column` on exist below `width`.
template <class Source>
__device__ __forceinline__ void copy_rows(uint32_t tile, const bf16* any, int column, int width, Source&& source) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = static_cast<int>(threadIdx.x) / 8 + 32 * i, piece = static_cast<int>(threadIdx.x) % 8;
    const bf16* from = source(row, i);
    const bool valid = from != nullptr && column + piece * 8 < width;
    copy_async_16(SharedRows<kDepth>{tile}.at(row, piece), valid ? from + column + piece * 8 : any, valid);
  }
}
/// Copies 64 rows x 128 columns.
template <class Source>
__device__ __forceinline__ void copy_columns(uint32_t tile, const bf16* any, int column, int width, Source&& source) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = static_cast<int>(threadIdx.x) / 16 + 16 * i, piece = static_cast<int>(threadIdx.x) % 16;
    const bf16* from = source(row);
    const bool valid = from != nullptr && column + piece * 8 < width;
    copy_async_16(SharedHalves{tile}.at(row, piece), valid ? from + column + piece * 8 : any, valid);
  }
}

/// What this thread copied becomes visible to products of warpgroups, once a barrier follows.
__device__ __forceinline__ void publish_copies() {
  if constexpr (kWarpgroups) hopper::publish_shared();
}

/// fetch(step, stage) copies, multiply(step, stage) uses; every thread calls it with the same steps.
template <int kStages = tiles::kStages, class Fetch, class Multiply>
__device__ __forceinline__ void each_step(int steps, Fetch&& fetch, Multiply&& multiply) {
  __syncthreads();
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) fetch(s, s);
    copy_async_commit();
  }
  for (int s = 0; s < steps; ++s) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    publish_copies();
    __syncthreads();
    if (s + kStages - 1 < steps) fetch(s + kStages - 1, (s + kStages - 1) % kStages);
    copy_async_commit();
    multiply(s, s % kStages);
  }
  copy_async_wait();
  __syncthreads();
}

__device__ __forceinline__ void clear(Accumulator& c) {
#pragma unroll
  for (int e = 0; e < 64; ++e) c[e] = 0;
}

/// Lane q of four holds word q of four pieces (of eight bf16): afterwards all words of piece q.
__device__ __forceinline__ void gather_piece(uint32_t (&words)[4]) {
  const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? words[i] : words[i + 1], 1);
    (odd ? words[i] : words[i + 1]) = other;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t other = __shfl_xor_sync(0xffffffffu, high ? words[i] : words[i + 2], 2);
    (high ? words[i] : words[i + 2]) = other;
  }
}

/// Pairs n … n + 3 of a line of the tile, as words of four lanes, to the columns from k0 on of a row of `width`, if `inside`.
__device__ __forceinline__ void store_piece(bf16* row, int k0, int n, bool inside, int width, uint32_t (&words)[4]) {
  gather_piece(words);
  const int lane = static_cast<int>(threadIdx.x) % 4, column = k0 + tile_column(n) - 2 * lane + 8 * lane;
  if (inside && column < width) *reinterpret_cast<uint4*>(row + column) = make_uint4(words[0], words[1], words[2], words[3]);
}

/// A piece times another one.
__device__ __forceinline__ Pack<bf16> times(const uint4& piece, Pack<bf16> x) {
  Pack<bf16> y;
  memcpy(&y, &piece, sizeof y);
#pragma unroll
  for (int v = 0; v < 8; ++v) x.v[v] = from_float<bf16>(to_float(x.v[v]) * to_float(y.v[v]));
  return x;
}

constexpr int kStagedRow = kTile + 8;  ///< floats of a row of a staged tile: no bank twice

constexpr int kPieces = kTile * kTile / 8 / kThreads;
/// This thread's piece `index` of a tile: row and first column.
__device__ __forceinline__ int piece_row(int index) { return static_cast<int>(threadIdx.x) / 16 + index * (kThreads / 16); }
__device__ __forceinline__ int piece_column() { return static_cast<int>(threadIdx.x) % 16 * 8; }

/// Accumulators to shared memory, then body(index, eight values) for this thread's pieces.
template <class Body>
__device__ __forceinline__ void each_piece(float* staged, const Accumulator& c, Body&& body) {
#pragma unroll
  for (int line = 0; line < kLines; ++line)
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair)
      *reinterpret_cast<float2*>(staged + tile_row(line) * kStagedRow + tile_column(pair)) =
          make_float2(c[element(line, pair)], c[element(line, pair) + 1]);
  __syncthreads();
#pragma unroll
  for (int p = 0; p < kPieces; ++p) {
    const auto* from = reinterpret_cast<const float4*>(staged + piece_row(p) * kStagedRow + piece_column());
    const float4 low = from[0], high = from[1];
    const float values[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    body(p, values);
  }
}

/// The contexts of a launch, cut into tiles. Queries are the positions from first_query on.
struct Plan {
  Layout32 layout;
  int64_t first_context;
  int contexts, C, r, first_query;
  bool own_only;
  int query_tile = kTile;

  __host__ __device__ int queries() const { return C - first_query; }
  __host__ __device__ int query_tiles() const { return (queries() + query_tile - 1) / query_tile; }
  __host__ __device__ int key_tiles() const { return (C + kTile - 1) / kTile; }
  /// Tiles of keys that the queries of a tile may see.
  __host__ __device__ int keys_of(int tile) const {
    const int last = first_query + (tile + 1) * query_tile - 1;
    return (last < C ? last : C - 1) / kTile + 1;
  }
  __host__ __device__ int pairs() const {
    int sum = 0;
    for (int t = 0; t < query_tiles(); ++t) sum += keys_of(t);
    return sum;
  }
};

/// One context: where its positions are.
struct Context {
  int before, own, own_count;
  int chosen_row, own_row, first_own_row;
  bool padding, shows_padding, own_only;

  __device__ Context(const Plan& p, int64_t index) {
    const int N = p.layout.splits(), number = static_cast<int>(p.first_context + index), b = number / N, i = number % N;
    before = p.layout.padding_before(i), own = p.layout.split * p.layout.top_k;
    own_count = p.layout.own_count(i), padding = p.layout.padding;
    chosen_row = p.layout.chosen_row(b, i), own_row = p.layout.own_row(b, i);
    first_own_row = p.layout.first_own_row();
    shows_padding = padding && !p.own_only && p.first_context + index == 0, own_only = p.own_only;
  }
  /// Row of Z at a position, −1: none.
  __device__ int row(int position) const {
    if (position < before) return padding ? position : -1;
    if (position < own) return chosen_row + position - before;
    return position - own < own_count ? own_row + position - own : -1;
  }
  /// Row of Y at a position, −1: no query, or padding that context 0 stands for.
  __device__ int result(int position) const {
    if (position < before && !shows_padding) return -1;
    const int at = row(position);
    return !own_only ? at : at >= first_own_row ? at - first_own_row : -1;
  }
  __device__ int first_key_tile() const { return padding ? 0 : before / kTile; }
  /// First tile of queries with any result.
  __device__ int first_query_tile(const Plan& p) const {
    return shows_padding || before <= p.first_query ? 0 : (before - p.first_query) / p.query_tile;
  }
};

/// Tiles of pair number `pair`: of queries and of keys.
__device__ __forceinline__ int2 pair_of(const Plan& p, int pair) {
  int query = 0;
  for (; pair >= p.keys_of(query); ++query) pair -= p.keys_of(query);
  return make_int2(query, pair);
}

/// What the first kernel leaves for the second.
struct Products {
  bf16 *W, *M;               // [contexts, queries, C]
  float *by_query, *by_key;  // sums of e: [contexts, key tiles, C], [contexts, query tiles, C]
  float* parts_A;            // [groups, C, C]
};

/// along of a position: what its query and its key gathered.
__device__ inline float along(const Plan& p, const Context& context, const Products& in, int64_t index, int position) {
  const int first = context.first_query_tile(p), key = position / kTile;
  float sum = 0;
  const int query = (position - p.first_query) / p.query_tile;
  if (position >= p.first_query && query >= first && (position >= context.before || context.shows_padding))
    for (int k = context.first_key_tile(); k < p.keys_of(query); ++k) sum += in.by_query[(index * p.key_tiles() + k) * p.C + position];
  for (int q = first; q < p.query_tiles(); ++q)
    if (key < p.keys_of(q)) sum += in.by_key[(index * p.query_tiles() + q) * p.C + position];
  return sum;
}

/// The first kernel of the backward: recomputes products for every pair of tiles; a group of contexts adds up its part of d_A.
void pairs_backward(Stream stream, const Plan& p, int groups, const bf16* Z, const float* inverse, const float* A, const bf16* dY,
                    const Products& out);
/// The same on Hopper, for tiles of 64 queries, where contexts consist of whole runs of 32 rows (ContextualizerShape::in_runs).
void pairs_in_runs(int device, const Plan& p, int groups, const Tensor& Z, const Tensor& inverse, const Tensor& A, const Tensor& dY,
                   const Products& out);
/// d_A (+)= Σ groups, in order; zero above the diagonal and for rows that are no queries.
void sum_weights(Stream stream, const Plan& p, int groups, const float* parts, float* dA, bool add);

}  // namespace saccade::cuda::tiles
