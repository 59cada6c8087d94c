// Forward on tensor cores: a block takes kRows queries, four warps own 16 kM of them each and go over tiles of 64 keys, which are
// copied one tile ahead. Scores, running maximum and sum stay in registers (FlashAttention-2, Dao 2023, algorithm 1).
#include "kernels/cuda/attention/attention_pattern.cuh"
#include "kernels/cuda/attention/attention_tiles.cuh"

namespace saccade::cuda {
namespace {

constexpr int kKeys = 64;

template <int D>
constexpr int kForwardShared = (kTileRows<D> + 4 * kKeys) * D * 2;

/// One row of queries: half of an accumulator's rows.
struct Row {
  int t, low, high;
  float max, sum;  // of scores · log2 e; the sum is this lane's share
  float weighted;  // Σ p (s − max), this lane's share
  float best;      // greatest score this lane saw
  int32_t best_key;
};

/// Where a thread's rows lie: row i of tile m of its warp, the columns `column` and the next of every eight.
template <int M>
struct Lane {
  int warp_row = static_cast<int>(threadIdx.x / 32) * 16 * M, row = static_cast<int>(threadIdx.x % 32 / 4),
      column = static_cast<int>(threadIdx.x % 4 * 2);
  __device__ __forceinline__ int of(int m, int i) const { return warp_row + m * 16 + i * 8 + row; }
};

/// What the rows see, and with `resume` what stands of them already; o is that of (sequence, head).
template <int D, int M, bool kGather, bool kExtra>
__device__ __forceinline__ void begin_rows(Row (&rows)[M][2], float (&acc)[M][D / 8][4], const ForwardArgs<bf16>& a,
                                           const QueryBlock& block, const bf16* o, int64_t stride) {
  const Lane<M> lane;
  clear(acc);
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = lane.of(m, i);
      Row& row = rows[m][i];
      row = {0, 0, 0, -INFINITY, 0.0f, 0.0f, -INFINITY, 0};
      if (r >= block.count) continue;
      row.t = block.position(r);
      const Sight seen = sight(a.p, row.t, kGather ? a.p.chosen(block.batch_head, row.t) : -1);
      row.low = seen.low, row.high = seen.high;
      if (!a.resume) continue;
      const int64_t at = int64_t{block.batch_head} * a.p.length + row.t;
      if (a.lse[at] == -INFINITY) continue;
      row.max = a.lse[at] * kLog2e;
      if (lane.column == 0) {
        row.sum = 1;
        if (kExtra && a.entropy) row.weighted = -a.entropy[at] * kLog2e;
      }
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        const auto pair = *reinterpret_cast<const __nv_bfloat162*>(o + row.t * stride + n * 8 + lane.column);
        acc[m][n][2 * i] = __low2float(pair), acc[m][n][2 * i + 1] = __high2float(pair);
      }
    }
}

/// s ← scale s − slope (t − j), in units of log 2
template <int M, int N>
__device__ __forceinline__ void add_bias(float (&s)[M][N][4], const Row (&rows)[M][2], float scale, float slope, int key) {
  const Lane<M> lane;
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        s[m][n][i] = s[m][n][i] * scale - slope * static_cast<float>(rows[m][i / 2].t - (key + n * 8 + lane.column + i % 2));
}

/// Scores of keys that a row does not see become -inf.
template <int M, int N>
__device__ __forceinline__ void hide(float (&s)[M][N][4], const Row (&rows)[M][2], int key) {
  const Lane<M> lane;
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int j = key + n * 8 + lane.column + i % 2;
        if (j < rows[m][i / 2].low || j >= rows[m][i / 2].high) s[m][n][i] = -INFINITY;
      }
}

/// The first of the tile's keys with score `top`, where that is the greatest so far.
template <int N>
__device__ __forceinline__ void note_best(Row& row, const float (&s)[N][4], int i, float top, float factor, int first_key) {
  if (top * factor > row.best) {
    row.best = top * factor;
#pragma unroll
    for (int n = N - 1; n >= 0; --n)
#pragma unroll
      for (int e = 1; e >= 0; --e)
        if (s[n][2 * i + e] == top) row.best_key = first_key + n * 8 + e;
  }
}

/// Row i of a tile: its scores become weights exp(s − max) with the new maximum; sum and output follow it.
template <int D, int N, bool kExtra>
__device__ __forceinline__ void soften(Row& row, float (&s)[N][4], float (&acc)[D / 8][4], int i, const ForwardArgs<bf16>& a, float factor,
                                       int first_key) {
  float top = s[0][2 * i];
#pragma unroll
  for (int n = 0; n < N; ++n) top = fmaxf(top, fmaxf(s[n][2 * i], s[n][2 * i + 1]));
  if constexpr (kExtra)
    if (a.best) note_best(row, s, i, top, factor, first_key);
  const float max = fmaxf(row.max, quad_max(top) * factor), shift = max == -INFINITY ? 0.0f : max;
  const float correction = exp2_approximate(row.max - shift);
  if constexpr (kExtra)
    if (a.entropy) row.weighted = correction > 0 ? (row.weighted + (row.max - shift) * row.sum) * correction : 0.0f;
  float sum = 0;
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const float x = s[n][2 * i + e] * factor - shift, p = exp2_approximate(x);
      if constexpr (kExtra)
        if (a.entropy && p > 0) row.weighted += p * x;
      s[n][2 * i + e] = p;
      sum += p;
    }
  row.sum = row.sum * correction + sum;
  row.max = max;
#pragma unroll
  for (int n = 0; n < D / 8; ++n) acc[n][2 * i] *= correction, acc[n][2 * i + 1] *= correction;
}

/// The greatest score of a row and its first key, over the lanes that share the row.
__device__ __forceinline__ void join_best(Row& row) {
#pragma unroll
  for (int step = 1; step < 4; step <<= 1) {
    const float other = __shfl_xor_sync(0xffffffffu, row.best, step);
    const int32_t key = __shfl_xor_sync(0xffffffffu, row.best_key, step);
    if (other > row.best || (other == row.best && key < row.best_key)) row.best = other, row.best_key = key;
  }
}

/// o = acc / sum, lse and, where wanted, entropy and the best key.
template <int D, int M, bool kExtra>
__device__ __forceinline__ void finish_rows(Row (&rows)[M][2], const float (&acc)[M][D / 8][4], const ForwardArgs<bf16>& a,
                                            const QueryBlock& block, bf16* o, int64_t stride) {
  const Lane<M> lane;
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      Row& row = rows[m][i];
      const float sum = quad_sum(row.sum), inverse = sum > 0 ? 1 / sum : 0.0f;
      float weighted = 0;
      if constexpr (kExtra) {
        weighted = quad_sum(row.weighted);
        join_best(row);
      }
      if (lane.of(m, i) >= block.count) continue;
#pragma unroll
      for (int n = 0; n < D / 8; ++n)
        *reinterpret_cast<uint32_t*>(o + row.t * stride + n * 8 + lane.column) =
            pack_bf16(acc[m][n][2 * i] * inverse, acc[m][n][2 * i + 1] * inverse);
      if (lane.column != 0) continue;
      const int64_t at = int64_t{block.batch_head} * a.p.length + row.t;
      a.lse[at] = sum > 0 ? (row.max + log2f(sum)) * kLn2 : -INFINITY;
      if constexpr (kExtra) {
        if (a.entropy) a.entropy[at] = sum > 0 ? (log2f(sum) - weighted * inverse) * kLn2 : 0.0f;
        if (a.best) a.best[at] = row.best_key;
      }
    }
}

template <int D, int kThreads, bool kGather, bool kExtra>
__global__ void __launch_bounds__(kThreads, 2) forward_kernel(const ForwardArgs<bf16> a) {
  constexpr int M = kWarpTiles<D, kThreads>, N = kKeys / 8;
  extern __shared__ __align__(128) char shared[];
  const QueryBlock block = query_block<kGather, kTileRows<D>>(a.p);
  if (block.count == 0) return;
  const int b = block.batch_head / a.p.heads, h = block.batch_head % a.p.heads;
  const int64_t stride = a.p.stride();
  const bf16 *q = a.q + b * a.q_batch + h * D, *k = a.k + b * a.k_batch + h * D, *v = a.v + b * a.v_batch + h * D;
  bf16* o = a.o + b * a.v_batch + h * D;
  const uint32_t base = shared_address(shared);
  const SharedRows<D> queries{base};
  constexpr uint32_t kTile = kKeys * D * 2;
  const uint32_t key_tiles = base + kTileRows<D> * D * 2, value_tiles = key_tiles + 2 * kTile;
  const auto fetch = [&](int key, uint32_t stage) {
    fill_pair<kKeys, kThreads>(SharedRows<D>{key_tiles + stage * kTile}, SharedRows<D>{value_tiles + stage * kTile}, k, v,
                               static_cast<int>(stride), [&](int r) { return key + r < a.p.length ? key + r : -1; });
    copy_async_commit();
  };
  queries.template fill<kTileRows<D>, kThreads>(
      q, [&](int r) { return r < block.count ? q + block.position(r) * stride : static_cast<const bf16*>(nullptr); });
  fetch(block.key_begin, 0);

  Row rows[M][2];
  float acc[M][D / 8][4];
  begin_rows<D, M, kGather, kExtra>(rows, acc, a, block, o, stride);
  const Lane<M> lane;
  const float slope = a.p.slope(h) * kLog2e;
  const bool biased = a.p.alibi || !(a.p.scale > 0);
  const float factor = biased ? 1.0f : a.p.scale * kLog2e;
  uint32_t fragments[M][D / 16][4];
  uint32_t stage = 0;
  for (int key = block.key_begin; key < block.key_end; key += kKeys, stage ^= 1) {
    copy_async_wait();
    __syncthreads();
    if (key == block.key_begin)
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int c = 0; c < D / 16; ++c) queries.load_a(fragments[m][c], lane.warp_row + m * 16, c);
    if (key + kKeys < block.key_end) fetch(key + kKeys, stage ^ 1);
    bool all = true, any = false;
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        all = all && rows[m][i].low <= key && rows[m][i].high >= key + kKeys;
        any = any || (rows[m][i].low < key + kKeys && rows[m][i].high > key);
      }
    if (!__any_sync(0xffffffffu, any)) continue;
    float s[M][N][4];
    clear(s);
    multiply_rows<M, N, D>(s, fragments, SharedRows<D>{key_tiles + stage * kTile}, 0);
    if (biased) add_bias(s, rows, a.p.scale * kLog2e, slope, key);
    if (!__all_sync(0xffffffffu, all)) hide(s, rows, key);
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int i = 0; i < 2; ++i) soften<D, N, kExtra>(rows[m][i], s[m], acc[m], i, a, factor, key + lane.column);
    multiply_weights<M, N, D>(acc, s, SharedRows<D>{value_tiles + stage * kTile}, 0);
  }
  finish_rows<D, M, kExtra>(rows, acc, a, block, o, stride);
}

}  // namespace

void tensor_forward(Stream stream, const AttentionForward& in) {
  const ForwardArgs<bf16> args = forward_args<bf16>(in);
  for_width(in.task.shape.width, [&](auto width) {
    constexpr int D = decltype(width)::value;
    const auto launch = [&](auto kernel, int64_t tiles, int threads) {
      allow_shared(kernel, kForwardShared<D>);
      kernel<<<dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(in.task.shape.sequences())), threads, kForwardShared<D>, stream>>>(
          args);
      check_launch();
    };
    const int64_t tiles = (in.task.shape.length + kTileRows<D> - 1) / kTileRows<D>;
    const bool gather = static_cast<bool>(in.task.lists.order), extra = in.entropy || in.best;
    constexpr int kLong = kTileThreads, kShort = kShortThreads<D>;
    if (gather && extra) return launch(forward_kernel<D, kLong, true, true>, args.p.max_tiles, kLong);
    if (gather) return launch(forward_kernel<D, kShort, true, false>, args.p.max_tiles, kShort);
    if (extra) return launch(forward_kernel<D, kLong, false, true>, tiles, kLong);
    if (in.task.chunk > 0) return launch(forward_kernel<D, kShort, false, false>, tiles, kShort);
    launch(forward_kernel<D, kLong, false, false>, tiles, kLong);
  });
}

}  // namespace saccade::cuda
