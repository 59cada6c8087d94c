// Backward on tensor cores, without atomics: one kernel sums dq over the keys, one sums dk and dv over the queries. Both make
// scores again from q, k and lse. The second works on the transposed scores, so that P and dS turn from results into factors
// in registers.
#include "kernels/cuda/attention/attention_pattern.cuh"
#include "kernels/cuda/attention/attention_tiles.cuh"

namespace saccade::cuda {
namespace {

constexpr int kStage = 64;  ///< rows that are copied at a time
constexpr int kStep = 32;   ///< of which so many are multiplied at a time

template <int D>
constexpr int kBackwardShared = (2 * kTileRows<D> + 4 * kStage) * D * 2;
constexpr int kQueryShared = 2 * kStage * 6 * 4;

/// Writes an accumulator's pairs of row r (address `to`) times a factor.
template <int D>
__device__ __forceinline__ void store_row(bf16* to, const float (&acc)[D / 8][4], int i, float factor, bool add) {
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
    auto* at = reinterpret_cast<__nv_bfloat162*>(to + n * 8 + threadIdx.x % 4 * 2);
    float x = acc[n][2 * i] * factor, y = acc[n][2 * i + 1] * factor;
    if (add) x += __low2float(*at), y += __high2float(*at);
    *at = __floats2bfloat162_rn(x, y);
  }
}

template <int D, int kThreads, bool kGather>
__global__ void __launch_bounds__(kThreads, 2) query_gradient_kernel(const BackwardArgs<bf16> a) {
  constexpr int M = kWarpTiles<D, kThreads>, N = kStep / 8;
  extern __shared__ __align__(128) char shared[];
  const QueryBlock block = query_block<kGather, kTileRows<D>>(a.p);
  if (block.count == 0) return;
  const int b = block.batch_head / a.p.heads, h = block.batch_head % a.p.heads, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t stride = a.p.stride(), offset = b * a.p.length * stride + h * D;
  const bf16 *q = a.q + b * a.q_batch + h * D, *k = a.k + b * a.k_batch + h * D, *v = a.v + b * a.v_batch + h * D, *d_o = a.d_o + offset;
  const uint32_t base = shared_address(shared);
  constexpr uint32_t kRowsBytes = kTileRows<D> * D * 2, kTile = kStage * D * 2;
  const SharedRows<D> queries{base}, outputs{base + kRowsBytes};
  const uint32_t key_tiles = base + 2 * kRowsBytes, value_tiles = key_tiles + 2 * kTile;
  const auto fetch = [&](int key, uint32_t stage) {
    fill_pair<kStage, kThreads>(SharedRows<D>{key_tiles + stage * kTile}, SharedRows<D>{value_tiles + stage * kTile}, k, v,
                                static_cast<int>(stride), [&](int r) { return key + r < a.p.length ? key + r : -1; });
    copy_async_commit();
  };
  const auto own_rows = [&](const bf16* x) {
    return [&, x](int r) { return r < block.count ? x + block.position(r) * stride : static_cast<const bf16*>(nullptr); };
  };
  queries.template fill<kTileRows<D>, kThreads>(q, own_rows(q));
  outputs.template fill<kTileRows<D>, kThreads>(d_o, own_rows(d_o));
  fetch(block.key_begin, 0);

  int position[M][2], low[M][2], high[M][2];
  float lse[M][2], delta[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = warp * 16 * M + m * 16 + i * 8 + lane / 4;
      position[m][i] = -1, low[m][i] = high[m][i] = 0, lse[m][i] = delta[m][i] = 0;
      if (r >= block.count) continue;
      const int t = position[m][i] = block.position(r);
      const Sight seen = sight(a.p, t, kGather ? a.p.chosen(block.batch_head, t) : -1);
      low[m][i] = seen.low, high[m][i] = seen.high;
      lse[m][i] = a.lse[int64_t{block.batch_head} * a.p.length + t] * kLog2e;
      delta[m][i] = a.delta[int64_t{block.batch_head} * a.p.length + t];
    }

  float acc[M][D / 8][4];
  clear(acc);
  uint32_t q_fragments[M][D / 16][4], o_fragments[M][D / 16][4];
  const float slope = a.p.slope(h) * kLog2e, factor = a.p.scale * kLog2e;
  uint32_t stage = 0;
  for (int first = block.key_begin; first < block.key_end; first += kStage, stage ^= 1) {
    copy_async_wait();
    __syncthreads();
    if (first == block.key_begin)
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int c = 0; c < D / 16; ++c) {
          queries.load_a(q_fragments[m][c], warp * 16 * M + m * 16, c);
          outputs.load_a(o_fragments[m][c], warp * 16 * M + m * 16, c);
        }
    if (first + kStage < block.key_end) fetch(first + kStage, stage ^ 1);
    const SharedRows<D> keys{key_tiles + stage * kTile}, values{value_tiles + stage * kTile};
#pragma unroll 1
    for (int sub = 0; sub < kStage; sub += kStep) {
      const int key = first + sub;
      bool all = true, any = false;
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          all = all && low[m][i] <= key && high[m][i] >= key + kStep;
          any = any || (low[m][i] < key + kStep && high[m][i] > key);
        }
      if (!__any_sync(0xffffffffu, any)) continue;
      all = __all_sync(0xffffffffu, all);
      float s[M][N][4], dp[M][N][4];
      clear(s);
      clear(dp);
      multiply_rows<M, N, D>(s, q_fragments, keys, sub);
      multiply_rows<M, N, D>(dp, o_fragments, values, sub);
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int j = key + n * 8 + lane % 4 * 2 + i % 2;
            float x = s[m][n][i] * factor - lse[m][i / 2];
            if (a.p.alibi) x -= slope * static_cast<float>(position[m][i / 2] - j);
            float p = exp2_approximate(x);
            if (!all && (j < low[m][i / 2] || j >= high[m][i / 2])) p = 0;
            s[m][n][i] = p * (dp[m][n][i] - delta[m][i / 2]);
          }
      multiply_weights<M, N, D>(acc, s, keys, sub);
    }
  }
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (position[m][i] >= 0) store_row<D>(a.dq + a.gradient(block.batch_head, position[m][i]), acc[m], i, a.p.scale, a.add_dq);
}

/// c [16 M x 8 N] = x yᵀ over all D columns, rows `row_x` … of x and `row_y` … of y.
template <int M, int N, int D>
__device__ __forceinline__ void multiply_tiles(float (&c)[M][N][4], const SharedRows<D>& x, int row_x, const SharedRows<D>& y, int row_y) {
  clear(c);
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    uint32_t a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m) x.load_a(a[m], row_x + m * 16, k);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      uint32_t b[4];
      y.load_b(b, row_y + 8 * n, k);
#pragma unroll
      for (int m = 0; m < M; ++m) multiply(c[m][n], a[m], b[0], b[1]), multiply(c[m][n + 1], a[m], b[2], b[3]);
    }
  }
}

/// What a stage of queries brings besides its rows.
struct QueryNotes {
  float lse[kStage], delta[kStage];
  int position[kStage], low[kStage], high[kStage], best[kStage];
};

/// Transposed scores (rows are keys, columns queries sub … of a stage) become probabilities: s = exp2(factor s − lse − slope (t − j)), 0
/// where the query does not see the key; `all`: every query sees every key.
template <int M, int N>
__device__ __forceinline__ void make_probabilities(float (&s)[M][N][4], const Pattern& p, const QueryNotes& note, int sub, int key,
                                                   bool all, float factor, float slope) {
  const int lane = threadIdx.x % 32, column = lane % 4 * 2;
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const float2 lses = *reinterpret_cast<const float2*>(&note.lse[sub + n * 8 + column]);
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int r = sub + n * 8 + column + e;
      const float lse = (e == 0 ? lses.x : lses.y) * kLog2e;
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int j = key + m * 16 + i * 8 + lane / 4;
          float x = s[m][n][2 * i + e] * factor - lse;
          if (p.alibi) x -= slope * static_cast<float>(note.position[r] - j);
          float weight = exp2_approximate(x);
          if (!all && (j < note.low[r] || j >= note.high[r])) weight = 0;
          s[m][n][2 * i + e] = weight;
        }
    }
  }
}

/// 1 where the key is the query's best one.
template <int M, int N>
__device__ __forceinline__ void mark_best(float (&one)[M][N][4], const QueryNotes& note, int sub, int key) {
  const int lane = threadIdx.x % 32, column = lane % 4 * 2;
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        one[m][n][i] = note.best[sub + n * 8 + column + i % 2] == key + m * 16 + i / 2 * 8 + lane / 4 ? 1.0f : 0.0f;
}

/// s = p ∘ (dp − delta)
template <int M, int N>
__device__ __forceinline__ void differentiate_scores(float (&s)[M][N][4], const float (&dp)[M][N][4], const QueryNotes& note, int sub) {
  const int column = threadIdx.x % 4 * 2;
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const float2 deltas = *reinterpret_cast<const float2*>(&note.delta[sub + n * 8 + column]);
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        s[m][n][2 * i] *= dp[m][n][2 * i] - deltas.x;
        s[m][n][2 * i + 1] *= dp[m][n][2 * i + 1] - deltas.y;
      }
  }
}

/// A block of extra queries leaves its sums in a.partial [batch head, extra, piece of a chunk, dk | dv, row, column]; a chunk's own block
/// adds those of its extras to its own and writes the gradients.
template <int D, int kRows, int M>
__device__ __forceinline__ void store_key_gradients(const BackwardArgs<bf16>& a, const KeyBlock& block, bool extra,
                                                    float (&dk)[M][D / 8][4], float (&dv)[M][D / 8][4]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = lane % 4 * 2;
  const auto piece = [&](int64_t index, int which, int r) {
    const int pieces = chunk_pieces(a.p.chunk, kRows);
    return a.partial + ((((int64_t{block.batch_head} * a.p.max_extras + index) * pieces + block.piece) * 2 + which) * kRows + r) * D +
           column;
  };
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = warp * 16 * M + m * 16 + i * 8 + lane / 4;
      if (r >= block.count) continue;
      if (extra) {
        const int64_t index = blockIdx.x / chunk_pieces(a.p.chunk, kRows);
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
          *reinterpret_cast<float2*>(piece(index, 0, r) + n * 8) = {dk[m][n][2 * i], dk[m][n][2 * i + 1]};
          *reinterpret_cast<float2*>(piece(index, 1, r) + n * 8) = {dv[m][n][2 * i], dv[m][n][2 * i + 1]};
        }
        continue;
      }
      for (int index = block.extra_begin; index < block.extra_end; ++index)
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
          const float2 x = *reinterpret_cast<const float2*>(piece(index, 0, r) + n * 8);
          const float2 y = *reinterpret_cast<const float2*>(piece(index, 1, r) + n * 8);
          dk[m][n][2 * i] += x.x, dk[m][n][2 * i + 1] += x.y;
          dv[m][n][2 * i] += y.x, dv[m][n][2 * i + 1] += y.y;
        }
      const int64_t at = a.gradient(block.batch_head, block.key + r);
      if (a.dk) store_row<D>(a.dk + at, dk[m], i, a.p.scale, a.add_dk);
      if (a.dv) store_row<D>(a.dv + at, dv[m], i, 1.0f, a.add_dv);
    }
}

template <int D, int kThreads>
__global__ void __launch_bounds__(kThreads, 2) key_gradient_kernel(const BackwardArgs<bf16> a, bool extra) {
  constexpr int M = kWarpTiles<D, kThreads>, N = kStep / 8, kRows = kTileRows<D>;
  extern __shared__ __align__(128) char shared[];
  const KeyBlock block = key_block<kRows>(a.p, extra);
  if (block.count <= 0) return;
  const int b = block.batch_head / a.p.heads, h = block.batch_head % a.p.heads, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t stride = a.p.stride(), offset = b * a.p.length * stride + h * D, row_offset = int64_t{block.batch_head} * a.p.length;
  const bf16 *q = a.q + b * a.q_batch + h * D, *k = a.k + b * a.k_batch + h * D, *v = a.v + b * a.v_batch + h * D, *d_o = a.d_o + offset;
  const uint32_t base = shared_address(shared);
  constexpr uint32_t kRowsBytes = kRows * D * 2, kTile = kStage * D * 2;
  const SharedRows<D> keys{base}, values{base + kRowsBytes};
  const uint32_t query_tiles = base + 2 * kRowsBytes, output_tiles = query_tiles + 2 * kTile;
  auto* notes = reinterpret_cast<QueryNotes*>(shared + kBackwardShared<D>);
  const int total = block.queries();
  const auto fetch = [&](int first, int stage) {
    fill_pair<kStage, kThreads>(SharedRows<D>{query_tiles + stage * kTile}, SharedRows<D>{output_tiles + stage * kTile}, q, d_o,
                                static_cast<int>(stride), [&](int r) { return first + r < total ? block.position(first + r) : -1; });
    if (threadIdx.x < kStage) {
      const int r = threadIdx.x, i = first + r;
      QueryNotes& note = notes[stage];
      const bool valid = i < total;
      const int t = valid ? block.position(i) : 0;
      copy_async_4(shared_address(&note.lse[r]), a.lse + row_offset + t, valid);
      copy_async_4(shared_address(&note.delta[r]), a.delta + row_offset + t, valid);
      if (a.best) copy_async_4(shared_address(&note.best[r]), a.best + row_offset + t, valid);
      const Sight seen = valid ? sight(a.p, t, i < block.in_order ? -1 : a.p.chosen(block.batch_head, t)) : Sight{0, 0};
      note.position[r] = t, note.low[r] = seen.low, note.high[r] = seen.high;
    }
    copy_async_commit();
  };
  const auto own_rows = [&](const bf16* x) {
    return [&, x](int r) { return r < block.count ? x + (block.key + r) * stride : static_cast<const bf16*>(nullptr); };
  };
  keys.template fill<kRows, kThreads>(k, own_rows(k));
  values.template fill<kRows, kThreads>(v, own_rows(v));
  fetch(0, 0);

  float dk[M][D / 8][4], dv[M][D / 8][4];
  clear(dk);
  clear(dv);
  const float slope = a.p.slope(h) * kLog2e, factor = a.p.scale * kLog2e;
  const int key = block.key + warp * 16 * M;
  const bool want_scores = a.dk != nullptr || (a.dv != nullptr && a.best == nullptr);
  int stage = 0;
  for (int first = 0; first < total; first += kStage, stage ^= 1) {
    copy_async_wait();
    __syncthreads();
    if (first + kStage < total) fetch(first + kStage, stage ^ 1);
    const SharedRows<D> queries{query_tiles + stage * kTile}, outputs{output_tiles + stage * kTile};
    const QueryNotes& note = notes[stage];
#pragma unroll 1
    for (int sub = 0; sub < kStage; sub += kStep) {
      const int low = note.low[sub + lane], high = note.high[sub + lane];
      if (!__any_sync(0xffffffffu, low < key + 16 * M && high > key)) continue;
      const bool all = __all_sync(0xffffffffu, low <= key && high >= key + 16 * M);
      float s[M][N][4], dp[M][N][4];
      if (want_scores) {
        multiply_tiles(s, keys, warp * 16 * M, queries, sub);
        // Now, so that the tensor cores have work while the exponentials are made.
        multiply_tiles(dp, values, warp * 16 * M, outputs, sub);
        make_probabilities(s, a.p, note, sub, key, all, factor, slope);
      }
      if (a.dv) {
        if (a.best) {
          float one[M][N][4];
          mark_best(one, note, sub, key);
          multiply_weights<M, N, D>(dv, one, outputs, sub);
        } else {
          multiply_weights<M, N, D>(dv, s, outputs, sub);
        }
      }
      if (!a.dk) continue;
      differentiate_scores(s, dp, note, sub);
      multiply_weights<M, N, D>(dk, s, queries, sub);
    }
  }

  store_key_gradients<D, kRows>(a, block, extra, dk, dv);
}

}  // namespace

void tensor_backward(Stream stream, const AttentionBackward& in) {
  const BackwardArgs<bf16> args = backward_args<bf16>(in);
  const auto batch_heads = static_cast<unsigned>(in.task.shape.sequences());
  for_width(in.task.shape.width, [&](auto width) {
    constexpr int D = decltype(width)::value;
    const int64_t tiles = (in.task.shape.length + kTileRows<D> - 1) / kTileRows<D>;
    const bool gather = static_cast<bool>(in.task.lists.order);
    constexpr int kLong = kTileThreads, kShort = kShortThreads<D>, kKeyShared = kBackwardShared<D> + kQueryShared;
    const auto launch = [&](auto kernel, int64_t blocks, int threads, int shared, auto... more) {
      allow_shared(kernel, shared);
      kernel<<<dim3(static_cast<unsigned>(blocks), batch_heads), threads, shared, stream>>>(args, more...);
      check_launch();
    };
    if (in.dq) {
      if (gather)
        launch(query_gradient_kernel<D, kShort, true>, args.p.max_tiles, kShort, kBackwardShared<D>);
      else if (in.task.chunk > 0)
        launch(query_gradient_kernel<D, kShort, false>, tiles, kShort, kBackwardShared<D>);
      else
        launch(query_gradient_kernel<D, kLong, false>, tiles, kLong, kBackwardShared<D>);
    }
    if (!in.dk && !in.dv) return;
    if (!gather) return launch(key_gradient_kernel<D, kLong>, tiles, kLong, kKeyShared, false);
    const int pieces = chunk_pieces(args.p.chunk, kTileRows<D>);
    if (args.p.max_extras > 0) launch(key_gradient_kernel<D, kShort>, args.p.max_extras * pieces, kShort, kKeyShared, true);
    launch(key_gradient_kernel<D, kShort>, args.p.groups * pieces, kShort, kKeyShared, false);
  });
}

}  // namespace saccade::cuda
