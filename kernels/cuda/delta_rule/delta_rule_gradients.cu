#include "kernels/cuda/delta_rule/delta_rule_chunks.cuh"

namespace saccade::cuda {
namespace {

constexpr int kBlock = 32;  ///< values taken at a time

struct Targets {
  bf16 *dq, *dk, *dv;  ///< dv only where it is added to
  bool add_dq, add_dk;
  ElementsTarget d_beta, dg;
};

/// Sums over rows and columns that several warps hold parts of.
struct Partial {
  float rows[2][kChunkTokens], columns[4][kChunkTokens];  ///< of F: by halves of columns, by strips of rows
  float queries[2][kChunkTokens], removed[2][kChunkTokens], written[2][kChunkTokens];
  float states[kChunkThreads / 32];
};

/// Adds up per row what a warp's part of f holds and leaves it in to[half][row].
template <int kTiles, class F>
__device__ __forceinline__ void sum_rows(float (&c)[kTiles][4], int row, int column, float (&to)[2][kChunkTokens], F&& f) {
  float sums[2] = {};
  each_pair(c, row, column, [&](int i, int j, float x, float y) { sums[i >= row + 8] += f(i, j, x, y); });
  const int lane = threadIdx.x % 32, half = threadIdx.x / 32 / 4;
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const float sum = quad_sum(sums[n]);
    if (lane % 4 == 0) to[half][row + lane / 4 + 8 * n] = sum;
  }
}

template <int K>
constexpr int gradients_bytes() {
  constexpr int kBlockRows = 3 * SharedMatrix<kBlock>::bytes(kChunkTokens) + 2 * SharedMatrix<kBlock>::bytes(K);
  return 2 * SharedMatrix<K>::bytes(kChunkTokens) + std::max(2 * kBlockRows, 2 * SharedMatrix<kChunkTokens>::bytes(kChunkTokens));
}

/// One buffer of a block of values.
template <int K>
struct ValueBlock {
  SharedMatrix<kBlock> d_o, x, dv, s, ds;
  __device__ explicit ValueBlock(SharedPieces& pieces)
      : d_o(pieces.matrix<kBlock>(kChunkTokens)),
        x(pieces.matrix<kBlock>(kChunkTokens)),
        dv(pieces.matrix<kBlock>(kChunkTokens)),
        s(pieces.matrix<kBlock>(K)),
        ds(pieces.matrix<kBlock>(K)) {}
  __device__ void fetch(const DeltaProblem& p, const DeltaChunk<K>& chunk, int column) const {
    d_o.template load<kChunkTokens>(chunk.values(p, p.d_o) + column, chunk.row_v, chunk.count);
    x.template load<kChunkTokens>(chunk.values(p, p.x) + column, chunk.row_v, chunk.count);
    dv.template load<kChunkTokens>(chunk.values(p, p.dv) + column, chunk.row_v, chunk.count);
    s.template load<K>(chunk.state(p, p.states) + column, p.values, K);
    ds.template load<K>(chunk.state(p, p.d_states) + column, p.values, K);
  }
  /// Adds this thread's share of ⟨dS', S⟩.
  __device__ void add_states(float& sum) const {
    for (int item = threadIdx.x; item < K * kBlock / 2; item += kChunkThreads) {
      const float2 x = s.pair(item / (kBlock / 2), item % (kBlock / 2) * 2), dx = ds.pair(item / (kBlock / 2), item % (kBlock / 2) * 2);
      sum += x.x * dx.x + x.y * dx.y;
    }
  }
  __device__ void store_values(const DeltaProblem& p, const DeltaChunk<K>& chunk, int column, bf16* to) const {
    for (int item = threadIdx.x; item < chunk.count * kBlock / 2; item += kChunkThreads) {
      const int i = item / (kBlock / 2), j = item % (kBlock / 2) * 2;
      const float2 d = dv.pair(i, j);
      store_pair(chunk.values(p, to) + i * chunk.row_v + column + j, d.x, d.y, true);
    }
  }
};

/// What belongs to pairs of tokens: the entries of dP ∘ Γ and of dN go to shared memory, their diagonal to dβ, sums of F to `part`.
/// `e`, `dp`: this warp's 16 x 32 entries of E and dP.
template <int K>
__device__ __forceinline__ void pair_gradients(const DeltaProblem& p, const Targets& out, const DeltaChunk<K>& chunk,
                                               const DeltaGates& gates, const SharedMatrix<K>& q, const SharedMatrix<K>& k,
                                               const float (&e)[4][4], const float (&dp)[4][4], const SharedMatrix<kChunkTokens>& scores,
                                               const SharedMatrix<kChunkTokens>& dn, Partial& part) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp % 4 * 16, half = warp / 4, column = half * kChunkTokens / 2;
  float qk[4][4] = {}, kk[4][4] = {}, row_sums[2] = {};
  if (p.g) {
    add_product<Form::plain, Form::transposed, K>(qk, q, row, k, column);
    add_product<Form::plain, Form::transposed, K>(kk, k, row, k, column);
  }
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    float column_sums[2] = {};
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int i = row + lane / 4 + c / 2 * 8, j = column + 8 * n + lane % 4 * 2 + c % 2;
      const float gamma = gates.gamma(i, j), d_score = p.scale * gamma * dp[n][c], dn_ij = j < i ? -gamma * e[n][c] : 0.0f;
      if (i == j && i < chunk.count) {
        const float beta = gates.beta[i];
        out.d_beta.put(chunk.first + int64_t{i} * p.heads, beta > 1e-15f ? e[n][c] / (beta * beta) : 0.0f);
      }
      const float f = j < i ? d_score * qk[n][c] + dn_ij * kk[n][c] : 0.0f;
      row_sums[c / 2] += f, column_sums[c % 2] += f;
      *scores.at(i, j) = from_float<bf16>(d_score);
      if (j <= i) *dn.at(i, j) = *dn.at(j, i) = from_float<bf16>(dn_ij);
    }
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float sum = column_sums[c];
#pragma unroll
      for (int offset = 4; offset < 32; offset *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
      if (lane < 4) part.columns[warp % 4][column + 8 * n + lane * 2 + c] = sum;
    }
  }
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    const float sum = quad_sum(row_sums[c]);
    if (lane % 4 == 0) part.rows[half][row + lane / 4 + 8 * c] = sum;
  }
}

/// By one warp: dg of the chunk's tokens, two a lane.
template <int K>
__device__ __forceinline__ void put_gate_gradients(const DeltaProblem& p, const Targets& out, const DeltaChunk<K>& chunk,
                                                   const DeltaGates& gates, const Partial& part) {
  const int lane = threadIdx.x;
  float d[2], into_end = 0;
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const int i = 2 * lane + n;
    const float w = part.written[0][i] + part.written[1][i];
    d[n] = part.rows[0][i] + part.rows[1][i] - (part.columns[0][i] + part.columns[1][i] + part.columns[2][i] + part.columns[3][i]) +
           part.queries[0][i] + part.queries[1][i] + part.removed[0][i] + part.removed[1][i] - w;
    into_end += w;
  }
  into_end = warp_sum(into_end);
  const float states = warp_sum(lane < kChunkThreads / 32 ? part.states[lane] : 0.0f);
  if (lane == 31) d[1] += into_end + gates.head[kChunkTokens - 1] * states;
  float sum = d[0] + d[1];
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const float behind = __shfl_down_sync(0xffffffffu, sum, offset);
    if (lane + offset < 32) sum += behind;
  }
#pragma unroll
  for (int n = 0; n < 2; ++n)
    if (2 * lane + n < chunk.count) out.dg.put(chunk.first + int64_t{2 * lane + n} * p.heads, n == 0 ? sum : sum - d[0]);
}

/// With E = Y' Xᵀ and dP = dO Xᵀ:  dQ = scale ((dP ∘ Γ) k + e^G ∘ (dO Sᵀ)),
///   dK = scale (dP ∘ Γ)ᵀ q + e^{G_L − G} ∘ (X dS'ᵀ) − (e^G ∘ Y') Sᵀ + (dN + dNᵀ) k with dN = −E ∘ Γ below the diagonal,
///   dβ_i = E_ii / β_i²  (X_i is β_i times what was read, Y'_i β_i times its gradient)
///   F = dP ∘ P − E ∘ N below the diagonal, dG_i = Σ_j F_ij − Σ_j F_ji + q_i · dQ_i(S) + k_i · dK_i(S) − w_i with w_i = k_i · dK_i(dS'),
///   dG_L += Σ w + e^{G_L} ⟨dS', S⟩, dg = sums of dG from the right
template <int K>
__global__ void __launch_bounds__(kChunkThreads, 1) gradients_kernel(DeltaProblem p, Targets out) {
  extern __shared__ __align__(16) char memory[];
  __shared__ DeltaGates gates;
  __shared__ Partial part;
  const DeltaChunk<K> chunk(p);
  SharedPieces pieces{memory}, later;
  const auto q = pieces.matrix<K>(kChunkTokens), k = pieces.matrix<K>(kChunkTokens);
  later = pieces;
  const ValueBlock<K> blocks[2] = {ValueBlock<K>(pieces), ValueBlock<K>(pieces)};
  const auto scores = later.matrix<kChunkTokens>(kChunkTokens), dn = later.matrix<kChunkTokens>(kChunkTokens);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp % 4 * 16, half = warp / 4;
  const int column = half * kChunkTokens / 2, column_k = half * K / 2;

  k.template load<kChunkTokens>(chunk.keys(p.k), chunk.row_k, chunk.count);
  q.template load<kChunkTokens>(chunk.keys(p.q), chunk.row_k, chunk.count);
  blocks[0].fetch(p, chunk, 0);
  copy_async_commit();
  gates.load(p, chunk);

  float e[4][4] = {}, dp[4][4] = {}, dq[K / 16][4] = {}, dk[K / 16][4] = {}, dk_read[K / 16][4] = {}, states = 0;
  for (int at = 0, buffer = 0; at < p.values; at += kBlock, buffer ^= 1) {
    if (at + kBlock < p.values) blocks[buffer ^ 1].fetch(p, chunk, at + kBlock);
    copy_async_commit();
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    const ValueBlock<K>& b = blocks[buffer];
    add_product<Form::plain, Form::transposed, kBlock>(e, b.dv, row, b.x, column);
    add_product<Form::plain, Form::transposed, kBlock>(dp, b.d_o, row, b.x, column);
    add_product<Form::plain, Form::transposed, kBlock>(dq, b.d_o, row, b.s, column_k);
    add_product<Form::plain, Form::transposed, kBlock>(dk, b.x, row, b.ds, column_k);
    add_product<Form::plain, Form::transposed, kBlock>(dk_read, b.dv, row, b.s, column_k);
    if (p.g) b.add_states(states);
    if (out.dv) b.store_values(p, chunk, at, out.dv);
    __syncthreads();
  }

  pair_gradients(p, out, chunk, gates, q, k, e, dp, scores, dn, part);
  states = warp_sum(states);
  if (lane == 0) part.states[warp] = states;

  // What comes through the states, then both together.
  each_pair(dq, row, column_k, [&](int i, int, float& x, float& y) { x *= p.scale * gates.head[i], y *= p.scale * gates.head[i]; });
  each_pair(dk, row, column_k, [&](int i, int, float& x, float& y) { x *= gates.tail[i], y *= gates.tail[i]; });
  each_pair(dk_read, row, column_k, [&](int i, int, float& x, float& y) { x *= -gates.head[i], y *= -gates.head[i]; });
  if (p.g) {
    const auto along = [&](const SharedMatrix<K>& rows) {
      return [&rows](int i, int j, float x, float y) {
        const float2 r = rows.pair(i, j);
        return x * r.x + y * r.y;
      };
    };
    sum_rows(dq, row, column_k, part.queries, along(q));
    sum_rows(dk, row, column_k, part.written, along(k));
    sum_rows(dk_read, row, column_k, part.removed, along(k));
  }
#pragma unroll
  for (int n = 0; n < K / 16; ++n)
#pragma unroll
    for (int c = 0; c < 4; ++c) dk[n][c] += dk_read[n][c];
  __syncthreads();
  add_product<Form::plain, Form::plain, kChunkTokens>(dq, scores, row, k, column_k);
  add_product<Form::transposed, Form::plain, kChunkTokens>(dk, scores, row, q, column_k);
  add_product<Form::plain, Form::plain, kChunkTokens>(dk, dn, row, k, column_k);
  each_pair(dq, row, column_k, [&](int i, int j, float x, float y) {
    if (out.dq && i < chunk.count) store_pair(chunk.keys(out.dq) + i * chunk.row_k + j, x, y, out.add_dq);
  });
  each_pair(dk, row, column_k, [&](int i, int j, float x, float y) {
    if (out.dk && i < chunk.count) store_pair(chunk.keys(out.dk) + i * chunk.row_k + j, x, y, out.add_dk);
  });
  if (p.g && warp == 0) put_gate_gradients(p, out, chunk, gates, part);
}

}  // namespace

void delta_chunk_targets(Stream stream, const DeltaRule& in, const DeltaProblem& problem, const DeltaTargets& out) {
  const Targets targets{pointer_or_null<bf16>(out.dq.tensor),
                        pointer_or_null<bf16>(out.dk.tensor),
                        out.dv.add ? pointer_or_null<bf16>(out.dv.tensor) : nullptr,
                        out.dq.add,
                        out.dk.add,
                        elements(out.d_beta),
                        elements(out.dg)};
  with_delta_widths(in.q.dim(3), kBlock, [&](auto k, auto) {
    static_assert(gradients_bytes<k()>() + (8 << 10) <= kDeltaChunkShared);
    launch_chunks(stream, gradients_kernel<k()>, problem.blocks, kChunkThreads, gradients_bytes<k()>(), problem, targets);
  });
}

}  // namespace saccade::cuda
