// Taylor attention on tensor cores for d 16 (1/√d is exact in bf16): all pairs in tiles, as attention without a maximum. A block of four
// warps owns 128 queries (or keys) of a head, a warp 32 of them, and walks tiles of 64 keys (queries), loaded one ahead.
#include "kernels/cuda/taylor_attention.cuh"
#include "kernels/cuda/tensor_core.cuh"

namespace saccade::cuda::taylor {
namespace {

constexpr int kD = 16, kWarps = 4, kThreads = 32 * kWarps, kOwn = 32, kBlock = kWarps * kOwn, kTile = 64, kStep = 32;
constexpr float kScale = 0.25f;

/// Pairs of a warp's rows and kStep others: element [m][n][i] at row 16 m + lane / 4 + 8 (i / 2), column 8 n + 2 (lane mod 4) + i mod 2.
using Pairs = float[2][4][4];

__device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
__device__ __forceinline__ int warp_row() { return static_cast<int>(threadIdx.x) / 32 * kOwn; }
__device__ __forceinline__ int row_of(int m, int i) { return warp_row() + 16 * m + lane() / 4 + i / 2 * 8; }
__device__ __forceinline__ int column_of(int n, int i) { return 8 * n + lane() % 4 * 2 + i % 2; }

/// x(m, n, i) for all elements.
template <class Use>
__device__ __forceinline__ void for_pairs(const Use& use) {
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) use(m, n, i);
}

/// Rows of one head from `first` on, as tiles take them: zeros behind the last token.
struct Rows {
  const bf16* x;
  int64_t stride;
  int length;

  template <int kCount, int D>
  __device__ __forceinline__ void fill(const SharedRows<D>& to, int first) const {
    to.template fill<kCount, kThreads>(x, [&](int row) { return first + row < length ? x + (first + row) * stride : nullptr; });
  }
};
__device__ __forceinline__ Rows keys(const Heads<bf16>& x, const bf16* rows, int head) {
  return {rows + x.key(head, 0), int64_t{x.heads} * kD, x.length};
}
template <int V>
__device__ __forceinline__ Rows values(const Heads<bf16>& x, const bf16* rows, int head) {
  return {rows + x.value(head, 0), int64_t{x.heads} * V, x.length};
}

/// A warp's rows of a block as the left operand.
template <int D>
__device__ __forceinline__ void load_own(uint32_t (&a)[2][D / 16][4], const SharedRows<D>& rows) {
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int k = 0; k < D / 16; ++k) rows.load_a(a[m][k], warp_row() + 16 * m, k);
}

/// A warp's rows of [128, D], where there are so many.
template <int D>
__device__ __forceinline__ void put_own(const float (&c)[2][D / 8][4], bf16* to, int64_t stride, int first, int length, bool add) {
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first + row_of(m, 2 * half);
      if (row >= length) continue;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        __nv_bfloat162* at = reinterpret_cast<__nv_bfloat162*>(to + row * stride + column_of(n, 0));
        float2 pair{c[m][n][2 * half], c[m][n][2 * half + 1]};
        if (add) pair.x += __low2float(*at), pair.y += __high2float(*at);
        *at = __floats2bfloat162_rn(pair.x, pair.y);
      }
    }
}

struct Block {
  int head, first;
};
/// Of 128 rows; those with the most pairs come first.
__device__ __forceinline__ Block block_of(int heads, bool queries) {
  const int index = static_cast<int>(queries ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
  return {index % heads, index / heads * kBlock};
}

template <int V>
__global__ void __launch_bounds__(kThreads) forward_kernel(Heads<bf16> x, bf16* o, float* denominator) {
  __shared__ alignas(128) bf16 memory[kBlock * kD + 2 * kTile * (kD + V)];
  const auto [head, first] = block_of(x.count(), true);
  const SharedRows<kD> q_rows{shared_address(memory)};
  const uint32_t tiles = q_rows.base + kBlock * kD * 2;
  const auto k_tile = [&](int j) { return SharedRows<kD>{tiles + static_cast<uint32_t>(j / kTile % 2 * kTile * kD * 2)}; };
  const auto v_tile = [&](int j) {
    return SharedRows<V>{tiles + static_cast<uint32_t>(2 * kTile * kD * 2 + j / kTile % 2 * kTile * V * 2)};
  };
  const Rows k = keys(x, x.k, head), v = values<V>(x, x.v, head);
  const auto load = [&](int j) {
    k.fill<kTile>(k_tile(j), j);
    v.fill<kTile>(v_tile(j), j);
    copy_async_commit();
  };
  keys(x, x.q, head).template fill<kBlock>(q_rows, first);
  load(0);
  uint32_t q[2][1][4];
  float c[2][V / 8][4], sums[2][2] = {};
  clear(c);
  const int end = min(first + kBlock, x.length);
  for (int j = 0; j < end; j += kTile) {
    copy_async_wait();
    __syncthreads();
    if (j == 0) load_own(q, q_rows);
    if (j + kTile < end) load(j + kTile);
    for (int step = 0; step < kTile; step += kStep) {
      const int last = first + warp_row() - j - step;  // column of the diagonal in the warp's first row
      if (last + kOwn <= 0) continue;
      Pairs p;
      clear(p);
      multiply_rows<2, 4, kD>(p, q, k_tile(j), step);
      for_pairs([&](int m, int n, int i) {
        float& element = p[m][n][i];
        element = series(element * kScale);
        if (last < kStep && column_of(n, i) > last + row_of(m, i) - warp_row()) element = 0;
        sums[m][i / 2] += element;
      });
      multiply_weights<2, 4, V>(c, p, v_tile(j), step);
    }
  }
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = quad_sum(sums[m][half]), inverse = 1.0f / (sum + kEpsilon);
      const int row = first + row_of(m, 2 * half);
      if (lane() % 4 == 0 && row < x.length) denominator[x.line(head) + row] = sum;
#pragma unroll
      for (int n = 0; n < V / 8; ++n) c[m][n][2 * half] *= inverse, c[m][n][2 * half + 1] *= inverse;
    }
  put_own<V>(c, o + x.value(head, 0), int64_t{x.heads} * V, first, x.length, false);
}

/// What backward knows of a query: dn = scale d_o, the denominator's gradient. Zero behind the last token.
struct Query {
  float scale, d_sum;
};
__device__ __forceinline__ Query query(const Heads<bf16>& x, const Gradients<bf16>& g, int head, int t) {
  if (t >= x.length) return {0, 0};
  return {1.0f / (g.denominator[x.line(head) + t] + kEpsilon), g.d_denominator[x.line(head) + t]};
}

template <int V>
__global__ void __launch_bounds__(kThreads) query_gradients_kernel(Heads<bf16> x, Gradients<bf16> g) {
  __shared__ alignas(128) bf16 memory[kBlock * (kD + V) + 2 * kTile * kD];
  __shared__ alignas(128) bf16 value_memory[kTile * V];
  const auto [head, first] = block_of(x.count(), true);
  const SharedRows<kD> q_rows{shared_address(memory)};
  const SharedRows<V> d_o_rows{q_rows.base + kBlock * kD * 2}, second_v{shared_address(value_memory)};
  const uint32_t tiles = d_o_rows.base + kBlock * V * 2;
  const auto k_tile = [&](int j) { return SharedRows<kD>{tiles + static_cast<uint32_t>(j / kTile % 2 * kTile * kD * 2)}; };
  // d_o is in registers once the first tile is there: its memory holds every second tile of v.
  const auto v_tile = [&](int j) { return j / kTile % 2 ? SharedRows<V>{d_o_rows.base} : second_v; };
  const Rows k = keys(x, x.k, head), v = values<V>(x, x.v, head);
  const auto load = [&](int j) {
    k.fill<kTile>(k_tile(j), j);
    v.fill<kTile>(v_tile(j), j);
    copy_async_commit();
  };
  keys(x, x.q, head).template fill<kBlock>(q_rows, first);
  values<V>(x, g.d_o, head).template fill<kBlock>(d_o_rows, first);
  load(0);
  uint32_t q[2][1][4], d_o[2][V / 16][4];
  Query own[2][2];
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) own[m][half] = query(x, g, head, first + row_of(m, 2 * half));
  float c[2][kD / 8][4];
  clear(c);
  const int end = min(first + kBlock, x.length);
  for (int j = 0; j < end; j += kTile) {
    copy_async_wait();
    __syncthreads();
    if (j == 0) {
      load_own(q, q_rows);
      load_own(d_o, d_o_rows);
      __syncthreads();
    }
    if (j + kTile < end) load(j + kTile);
    for (int step = 0; step < kTile; step += kStep) {
      const int last = first + warp_row() - j - step;
      if (last + kOwn <= 0) continue;
      Pairs s, dp;
      clear(s);
      clear(dp);
      multiply_rows<2, 4, kD>(s, q, k_tile(j), step);
      multiply_rows<2, 4, V>(dp, d_o, v_tile(j), step);
      for_pairs([&](int m, int n, int i) {
        const Query row = own[m][i / 2];
        float& element = dp[m][n][i];
        element = fmaf(row.scale, element, row.d_sum) * fmaf(kScale * kScale, s[m][n][i], kScale);
        if (last < kStep && column_of(n, i) > last + row_of(m, i) - warp_row()) element = 0;
      });
      multiply_weights<2, 4, kD>(c, dp, k_tile(j), step);
    }
  }
  put_own<kD>(c, g.dq + x.key(head, 0), int64_t{x.heads} * kD, first, x.length, g.add_q);
}

template <int V>
__global__ void __launch_bounds__(kThreads) key_gradients_kernel(Heads<bf16> x, Gradients<bf16> g) {
  __shared__ alignas(128) bf16 memory[kBlock * (kD + V) + 2 * kTile * kD];
  __shared__ alignas(128) bf16 row_memory[kTile * V];
  __shared__ Query queries[2][kTile];
  const auto [head, first] = block_of(x.count(), false);
  const SharedRows<kD> k_rows{shared_address(memory)};
  const SharedRows<V> v_rows{k_rows.base + kBlock * kD * 2}, second{shared_address(row_memory)};
  const uint32_t tiles = v_rows.base + kBlock * V * 2;
  const auto q_tile = [&](int t) { return SharedRows<kD>{tiles + static_cast<uint32_t>((t - first) / kTile % 2 * kTile * kD * 2)}; };
  // v is in registers once the first tile is there: its memory holds every second tile of d_o.
  const auto d_o_tile = [&](int t) { return (t - first) / kTile % 2 ? SharedRows<V>{v_rows.base} : second; };
  const Rows q = keys(x, x.q, head), d_o = values<V>(x, g.d_o, head);
  const auto load = [&](int t) {
    q.fill<kTile>(q_tile(t), t);
    d_o.fill<kTile>(d_o_tile(t), t);
    copy_async_commit();
    if (threadIdx.x < kTile) queries[(t - first) / kTile % 2][threadIdx.x] = query(x, g, head, t + static_cast<int>(threadIdx.x));
  };
  keys(x, x.k, head).template fill<kBlock>(k_rows, first);
  values<V>(x, x.v, head).template fill<kBlock>(v_rows, first);
  load(first);
  uint32_t k[2][1][4], v[2][V / 16][4];
  float dk[2][kD / 8][4], dv[2][V / 8][4];
  clear(dk);
  clear(dv);
  for (int t = first; t < x.length; t += kTile) {
    copy_async_wait();
    __syncthreads();
    if (t == first) {
      load_own(k, k_rows);
      load_own(v, v_rows);
      __syncthreads();
    }
    if (t + kTile < x.length) load(t + kTile);
    const Query* known = queries[(t - first) / kTile % 2];
    for (int step = 0; step < kTile; step += kStep) {
      const int begin = first + warp_row() - t - step;  // first query that sees the warp's first key, from this step's first
      if (begin >= kStep) continue;
      Pairs s, dp;
      clear(s);
      clear(dp);
      multiply_rows<2, 4, kD>(s, k, q_tile(t), step);
      multiply_rows<2, 4, V>(dp, v, d_o_tile(t), step);
      for_pairs([&](int m, int n, int i) {
        const Query column = known[step + column_of(n, i)];
        const bool seen = begin + kOwn <= 0 || column_of(n, i) >= begin + row_of(m, i) - warp_row();
        const float score = s[m][n][i] * kScale;
        dp[m][n][i] = seen ? fmaf(column.scale, dp[m][n][i], column.d_sum) * fmaf(kScale, score, kScale) : 0.0f;
        s[m][n][i] = seen ? series(score) * column.scale : 0.0f;
      });
      multiply_weights<2, 4, V>(dv, s, d_o_tile(t), step);
      multiply_weights<2, 4, kD>(dk, dp, q_tile(t), step);
    }
  }
  if (g.dk) put_own<kD>(dk, g.dk + x.key(head, 0), int64_t{x.heads} * kD, first, x.length, g.add_k);
  if (g.dv) put_own<V>(dv, g.dv + x.value(head, 0), int64_t{x.heads} * V, first, x.length, g.add_v);
}

/// use(width of the values)
template <class Use>
void with_values(const Heads<bf16>& x, const Use& use) {
  if (x.values == 64) return use(std::integral_constant<int, 64>{});
  use(std::integral_constant<int, 32>{});
}

unsigned blocks(const Heads<bf16>& x) { return blocks_for(x.length, kBlock) * static_cast<unsigned>(x.count()); }

}  // namespace

void forward_on_tensor_cores(Stream stream, const Heads<bf16>& x, bf16* o, float* denominator) {
  with_values(x, [&](auto width) { forward_kernel<width()><<<blocks(x), kThreads, 0, stream>>>(x, o, denominator); });
}

void backward_on_tensor_cores(Stream stream, const Heads<bf16>& x, const Gradients<bf16>& g) {
  with_values(x, [&](auto width) {
    if (g.dq) query_gradients_kernel<width()><<<blocks(x), kThreads, 0, stream>>>(x, g);
    if (g.dk || g.dv) key_gradients_kernel<width()><<<blocks(x), kThreads, 0, stream>>>(x, g);
  });
}

}  // namespace saccade::cuda::taylor
