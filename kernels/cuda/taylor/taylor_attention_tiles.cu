// Taylor attention on tensor cores for d 16 (1/√d is exact in bf16): all pairs of a segment in tiles, as attention without a maximum. A
// block of four warps owns 128 queries (or keys) of a head, a warp 32 of them, and walks tiles of 64 keys (queries), loaded one ahead.
#include "kernels/cuda/device/copy_rows.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/cuda/taylor/taylor_attention.cuh"

namespace saccade::cuda::taylor {
namespace {

constexpr int kD = 16, kWarps = 4, kThreads = 32 * kWarps, kOwn = 32, kBlock = kWarps * kOwn, kTile = 64, kStep = 32;

/// 1 + s + s² / 2 and its slope over √d, of s = dot / 4
__device__ __forceinline__ float weight(float dot) { return fmaf(dot, fmaf(dot, 1.0f / 32, 0.25f), 1.0f); }
__device__ __forceinline__ float slope(float dot) { return fmaf(dot, 1.0f / 16, 0.25f); }

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

/// Zeros for columns behind the diagonal, which the warp's first row meets at column `first`; kKeys: rows are keys, zeros before it.
template <bool kKeys = false>
__device__ __forceinline__ void hide(Pairs& x, int first) {
  if (kKeys ? first <= -kOwn : first >= kStep) return;
  for_pairs([&](int m, int n, int i) {
    const int diagonal = first + row_of(m, i) - warp_row();
    if (kKeys ? column_of(n, i) < diagonal : column_of(n, i) > diagonal) x[m][n][i] = 0;
  });
}

/// Rows of one head from `first` on, as tiles take them: zeros behind the last token.
struct HeadRows {
  const bf16* x;
  int64_t stride;
  int length;

  template <int kCount, int D>
  __device__ __forceinline__ void fill(const SharedRows<D>& to, int first) const {
    copy_rows<kCount, kThreads>(to, x + first * stride, stride, length - first);
  }
};
__device__ __forceinline__ HeadRows keys(const Heads<bf16>& x, const bf16* rows, int head) {
  return {rows + x.key(head, 0), int64_t{x.heads} * kD, x.length};
}
template <int V>
__device__ __forceinline__ HeadRows values(const Heads<bf16>& x, const bf16* rows, int head) {
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
  const HeadRows k = keys(x, x.k, head), v = values<V>(x, x.v, head);
  const auto load = [&](int j) {
    k.fill<kTile>(k_tile(j), j);
    v.fill<kTile>(v_tile(j), j);
    copy_async_commit();
  };
  keys(x, x.q, head).template fill<kBlock>(q_rows, first);
  const int begin = x.segment_begin(first), end = min(first + kBlock, x.length);
  load(begin);
  uint32_t q[2][1][4];
  float c[2][V / 8][4], sums[2][2] = {};
  clear(c);
  for (int j = begin; j < end; j += kTile) {
    copy_async_wait();
    __syncthreads();
    if (j == begin) load_own(q, q_rows);
    if (j + kTile < end) load(j + kTile);
    for (int step = 0; step < kTile; step += kStep) {
      const int last = first + warp_row() - j - step;  // column of the diagonal in the warp's first row
      if (last + kOwn <= 0) continue;
      Pairs p;
      clear(p);
      multiply_rows<2, 4, kD>(p, q, k_tile(j), step);
      for_pairs([&](int m, int n, int i) { p[m][n][i] = weight(p[m][n][i]); });
      hide(p, last);
      for_pairs([&](int m, int n, int i) { sums[m][i / 2] += p[m][n][i]; });
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

/// dn = d_o / (denominator + ε), d_denominator = −dn · o: V / 8 lanes own a row.
template <int V>
__global__ void __launch_bounds__(256)
    output_gradients_kernel(Heads<bf16> x, const bf16* o, const bf16* d_o, const float* denominator, bf16* dn, float* d_denominator) {
  const int64_t item = int64_t{blockIdx.x} * 256 + threadIdx.x, rows = int64_t{x.count()} * x.length;
  const bool valid = item / (V / 8) < rows;
  const int64_t row = valid ? item / (V / 8) : rows - 1;  // of [B, T, H]
  const int64_t at = row * V + item % (V / 8) * 8, token = row / x.heads;
  const int64_t line = (token / x.length * x.heads + row % x.heads) * x.length + token % x.length;
  const float inverse = 1.0f / (denominator[line] + kEpsilon);
  const Values<8> y = load_values<8>(o + at);
  Values<8> d = load_values<8>(d_o + at);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) d.v[i] *= inverse, sum = fmaf(d.v[i], y.v[i], sum);
#pragma unroll
  for (int offset = V / 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (!valid) return;
  store_values(dn + at, d);
  if (item % (V / 8) == 0) d_denominator[line] = -sum;
}

template <int V>
__global__ void __launch_bounds__(kThreads) query_gradients_kernel(Heads<bf16> x, Gradients<bf16> g) {
  __shared__ alignas(128) bf16 memory[kBlock * (kD + V) + 2 * kTile * kD];
  __shared__ alignas(128) bf16 value_memory[kTile * V];
  const auto [head, first] = block_of(x.count(), true);
  const SharedRows<kD> q_rows{shared_address(memory)};
  const SharedRows<V> dn_rows{q_rows.base + kBlock * kD * 2}, second_v{shared_address(value_memory)};
  const uint32_t tiles = dn_rows.base + kBlock * V * 2;
  const auto k_tile = [&](int j) { return SharedRows<kD>{tiles + static_cast<uint32_t>(j / kTile % 2 * kTile * kD * 2)}; };
  // dn is in registers once the first tile, an even one, is there: its memory holds every second tile of v.
  const auto v_tile = [&](int j) { return j / kTile % 2 ? SharedRows<V>{dn_rows.base} : second_v; };
  const HeadRows k = keys(x, x.k, head), v = values<V>(x, x.v, head);
  const auto load = [&](int j) {
    k.fill<kTile>(k_tile(j), j);
    v.fill<kTile>(v_tile(j), j);
    copy_async_commit();
  };
  keys(x, x.q, head).template fill<kBlock>(q_rows, first);
  values<V>(x, g.dn, head).template fill<kBlock>(dn_rows, first);
  const int begin = x.segment_begin(first), end = min(first + kBlock, x.length);
  load(begin);
  uint32_t q[2][1][4], dn[2][V / 16][4];
  float d_sums[2][2];
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) d_sums[m][half] = g.d_denominator[x.line(head) + min(first + row_of(m, 2 * half), x.length - 1)];
  float c[2][kD / 8][4];
  clear(c);
  for (int j = begin; j < end; j += kTile) {
    copy_async_wait();
    __syncthreads();
    if (j == begin) {
      load_own(q, q_rows);
      load_own(dn, dn_rows);
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
      multiply_rows<2, 4, V>(dp, dn, v_tile(j), step);
      for_pairs([&](int m, int n, int i) { dp[m][n][i] = (dp[m][n][i] + d_sums[m][i / 2]) * slope(s[m][n][i]); });
      hide(dp, last);
      multiply_weights<2, 4, kD>(c, dp, k_tile(j), step);
    }
  }
  put_own<kD>(c, g.dq + x.key(head, 0), int64_t{x.heads} * kD, first, x.length, g.add_q);
}

template <int V>
__global__ void __launch_bounds__(kThreads) key_gradients_kernel(Heads<bf16> x, Gradients<bf16> g) {
  __shared__ alignas(128) bf16 memory[kBlock * (kD + V) + 2 * kTile * kD];
  __shared__ alignas(128) bf16 row_memory[kTile * V];
  __shared__ float d_sums[2][kTile];
  const auto [head, first] = block_of(x.count(), false);
  const SharedRows<kD> k_rows{shared_address(memory)};
  const SharedRows<V> v_rows{k_rows.base + kBlock * kD * 2}, second{shared_address(row_memory)};
  const uint32_t tiles = v_rows.base + kBlock * V * 2;
  const auto q_tile = [&](int t) { return SharedRows<kD>{tiles + static_cast<uint32_t>((t - first) / kTile % 2 * kTile * kD * 2)}; };
  // v is in registers once the first tile is there: its memory holds every second tile of dn.
  const auto dn_tile = [&](int t) { return (t - first) / kTile % 2 ? SharedRows<V>{v_rows.base} : second; };
  const HeadRows q = keys(x, x.q, head), dn = values<V>(x, g.dn, head);
  const auto load = [&](int t) {
    q.fill<kTile>(q_tile(t), t);
    dn.fill<kTile>(dn_tile(t), t);
    copy_async_commit();
    const int own = t + static_cast<int>(threadIdx.x);
    if (threadIdx.x < kTile) d_sums[(t - first) / kTile % 2][threadIdx.x] = own < x.length ? g.d_denominator[x.line(head) + own] : 0.0f;
  };
  keys(x, x.k, head).template fill<kBlock>(k_rows, first);
  values<V>(x, x.v, head).template fill<kBlock>(v_rows, first);
  load(first);
  uint32_t k[2][1][4], v[2][V / 16][4];
  float dk[2][kD / 8][4], dv[2][V / 8][4];
  clear(dk);
  clear(dv);
  const int end = x.segment_end(first);
  for (int t = first; t < end; t += kTile) {
    copy_async_wait();
    __syncthreads();
    if (t == first) {
      load_own(k, k_rows);
      load_own(v, v_rows);
      __syncthreads();
    }
    if (t + kTile < end) load(t + kTile);
    const float* known = d_sums[(t - first) / kTile % 2];
    for (int step = 0; step < kTile; step += kStep) {
      const int begin = first + warp_row() - t - step;  // first query that sees the warp's first key, from this step's first
      if (begin >= kStep) continue;
      Pairs s, dp;
      clear(s);
      clear(dp);
      multiply_rows<2, 4, kD>(s, k, q_tile(t), step);
      multiply_rows<2, 4, V>(dp, v, dn_tile(t), step);
      for_pairs([&](int m, int n, int i) {
        dp[m][n][i] = (dp[m][n][i] + known[step + column_of(n, i)]) * slope(s[m][n][i]);
        s[m][n][i] = weight(s[m][n][i]);
      });
      hide<true>(dp, begin);
      hide<true>(s, begin);
      multiply_weights<2, 4, V>(dv, s, dn_tile(t), step);
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

void backward_on_tensor_cores(Stream stream, const Heads<bf16>& x, const Gradients<bf16>& g, const bf16* o) {
  with_values(x, [&](auto width) {
    const int64_t items = int64_t{x.count()} * x.length * (width() / 8);
    output_gradients_kernel<width()><<<blocks_for(items, 256), 256, 0, stream>>>(x, o, g.d_o, g.denominator, g.dn, g.d_denominator);
    if (g.dq) query_gradients_kernel<width()><<<blocks(x), kThreads, 0, stream>>>(x, g);
    if (g.dk || g.dv) key_gradients_kernel<width()><<<blocks(x), kThreads, 0, stream>>>(x, g);
  });
}

}  // namespace saccade::cuda::taylor
