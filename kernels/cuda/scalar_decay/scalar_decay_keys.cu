// Gradients of q and k and of the log decays on tensor cores. A block owns a chunk of a group and walks its heads, so that what they add to
// the shared rows stays in registers: with dM = d_o vᵀ of a head, F = dM ∘ Γ and states S before and dS behind the chunk,
//   dq = Σ_h F k + head ∘ (d_o Sᵀ),   dk = Σ_h Fᵀ q + tail ∘ (v dSᵀ)
//   dG_i = Σ_j P_ij − Σ_j P_ji + reads_i − writes_i,  P = F ∘ (q kᵀ) below the diagonal;  dG_last += Σ writes + last ⟨dS, S⟩
#include "kernels/cuda/scalar_decay/scalar_decay_keys.cuh"

namespace saccade::cuda::decay {
namespace {

/// A warp owns 16 rows and a quarter of the columns.
constexpr int kWarps = 16, kThreads = 32 * kWarps, kQuarters = 4;

template <int P, int N>
struct Sizes {
  static constexpr uint32_t kValues = kChunk * P * 2, kState = P * N * 2, kStage = 2 * kValues + 2 * kState, kScores = kChunk * kChunk * 2;
  static constexpr uint32_t kRows = 2 * kChunk * N * 2;  ///< q and k, at last
  static constexpr int shared(int stages) { return static_cast<int>(kScores + std::max(static_cast<uint32_t>(stages) * kStage, kRows)); }
};

using Workspace = HeadWorkspace<kQuarters, kWarps>;

/// A head's tiles.
template <int P, int N>
struct Stage {
  SharedRows<P> d_o, x;
  SharedRows<N> state, d_state;
  explicit __device__ Stage(uint32_t base)
      : d_o{base}, x{base + Sizes<P, N>::kValues}, state{base + 2 * Sizes<P, N>::kValues}, d_state{state.base + Sizes<P, N>::kState} {}

  __device__ void load(const Form<bf16>& f, const KeyGradients& g, const ChunkPosition& p) const {
    const int64_t row = f.value_row(p, 0), stride = int64_t{f.heads} * P, at = state_row<P, N>(f, p.b, p.c, p.h, 0);
    copy_rows<kChunk, kThreads>(d_o, g.d_o + row, stride, p.size);
    copy_rows<kChunk, kThreads>(x, f.x + row, stride, p.size);
    copy_rows<P, kThreads>(state, g.states + at, N, P);
    copy_rows<P, kThreads>(d_state, g.d_states + at, N, P);
    copy_async_commit();
  }
};

/// c [16, N / 4] += a times columns [column, + N / 4) of the rows.
template <int P, int N>
__device__ __forceinline__ void add_product(float (&c)[N / 32][4], const uint32_t (&a)[P / 16][4], const SharedRows<N>& rows, int column) {
#pragma unroll
  for (int k = 0; k < P / 16; ++k)
#pragma unroll
    for (int n = 0; n < N / 64; ++n) {
      uint32_t b[4];
      rows.load_b_transposed(b, 16 * k, column / 16 + n);
      multiply(c[2 * n], a[k], b[0], b[1]);
      multiply(c[2 * n + 1], a[k], b[2], b[3]);
    }
}

/// Where a warp works in a chunk.
struct Own {
  int warp, lane, row, quarter;
  __device__ Own()
      : warp(static_cast<int>(threadIdx.x) / 32), lane(static_cast<int>(threadIdx.x) % 32), row(warp % 4 * 16), quarter(warp / 4) {}
  /// Row and column of element i of tile n of a [16, 16] part of pairs.
  __device__ int pair_row(int i) const { return row + lane / 4 + i / 2 * 8; }
  __device__ int pair_column(int n, int i) const { return quarter * 16 + n * 8 + lane % 4 * 2 + i % 2; }
  __device__ bool sees_pairs() const { return quarter * 16 <= row; }
  /// Elements 0, 1 (2, 3 with `half`) of tile n of pairs in memory.
  __device__ uint32_t pair_address(const SharedRows<kChunk>& pairs, int n, int half) const {
    return pairs.at(pair_row(2 * half), quarter * 2 + n) + static_cast<uint32_t>(lane % 4 * 4);
  }
};

/// d_scores += F of a head, and the sums of P over rows and columns.
template <int P>
__device__ __forceinline__ void add_pairs_of_head(const Own& own, const uint32_t (&d_o)[P / 16][4], const SharedRows<P>& x,
                                                  const uint32_t (&scores)[2][2], Workspace& workspace, float (&d_scores)[2][4]) {
  float c[2][4] = {};
#pragma unroll
  for (int k = 0; k < P / 16; ++k) {
    uint32_t b[4];
    x.load_b(b, own.quarter * 16, k);
    multiply(c[0], d_o[k], b[0], b[1]);
    multiply(c[1], d_o[k], b[2], b[3]);
  }
  float row_sums[2] = {}, sums[4] = {};
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int t = own.pair_row(i), j = own.pair_column(n, i);
      float value = c[n][i] * exp2_approximate(workspace.running[t] - workspace.stepped[j]);
      if (j > t) value = 0;
      d_scores[n][i] += value;
      const float product = j < t ? value * (i % 2 ? high(scores[n][i / 2]) : low(scores[n][i / 2])) : 0.0f;
      row_sums[i / 2] += product;
      sums[2 * n + i % 2] += product;
    }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    row_sums[half] = quad_sum(row_sums[half]);
    if (own.lane % 4 == 0) workspace.rows[own.quarter][own.pair_row(2 * half)] = row_sums[half];
  }
  lane_sums<4, 16, 4>(sums);  // eight lanes share the columns of two tiles: two of them end with each
  if (own.lane / 4 % 2 == 0)
    workspace.columns[own.warp % 4][own.quarter * 16 + own.lane / 16 * 8 + own.lane % 4 * 2 + own.lane / 8 % 2] = sums[0];
}

/// A warp's part of dq or dk, its columns back in order.
template <int N>
__device__ __forceinline__ void put_rows(const Own& own, const float (&c)[N / 32][4], bf16* to, int64_t stride, int size, int keys,
                                         bool add) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = own.row + own.lane / 4 + 8 * half;
#pragma unroll
    for (int n = 0; n < N / 32; n += 2) {
      const int place = own.quarter * (N / 4) + 8 * n, column = place / 32 * 32 + own.lane % 4 * 8 + place % 32 / 4;
      if (row >= size || column >= keys) continue;
      put_8(to + row * stride + column,
            {pack_bf16(c[n][2 * half], c[n][2 * half + 1]), pack_bf16(c[n + 1][2 * half], c[n + 1][2 * half + 1])}, add);
    }
  }
}

template <int P, int N>
__global__ void __launch_bounds__(kThreads) key_gradients_kernel(Form<bf16> f, KeyGradients g, int stage_count) {
  extern __shared__ __align__(128) char shared[];
  __shared__ Workspace workspaces[2];
  const uint32_t base = shared_address(shared), stages = base + Sizes<P, N>::kScores;
  const SharedRows<kChunk> pairs{base};
  const Own own;
  ChunkPosition p = f.place(static_cast<int>(blockIdx.x), f.groups);
  const int count = f.heads / f.groups;
  p.h = p.group * count;
  const auto stage = [&](int i) { return Stage<P, N>(stages + static_cast<uint32_t>(i % stage_count) * Sizes<P, N>::kStage); };
  const int token = min(static_cast<int>(threadIdx.x), kChunk - 1);
  const auto put_factors = [&](Workspace& workspace, const TokenDecay& decay) {
    if (threadIdx.x < kChunk) workspace.put(token, decay);
  };
  const bf16* given = g.scores + f.scores(p);
  copy_rows<kChunk, kThreads>(pairs, given, kChunk, kChunk);
  stage(0).load(f, g, p);
  for (int i = static_cast<int>(threadIdx.x); i < 2 * static_cast<int>(sizeof(Workspace) / sizeof(float)); i += kThreads)
    reinterpret_cast<float*>(workspaces)[i] = 0;
  TokenDecay decay;
  decay.load(f, p, token);
  __syncthreads();
  put_factors(workspaces[0], decay);

  float dq[N / 32][4] = {}, dk[N / 32][4] = {}, d_scores[2][4] = {};
  uint32_t scores[2][2];
  for (int i = 0; i < count; ++i) {
    Workspace& workspace = workspaces[i % 2];
    const Stage<P, N> s = stage(i);
    copy_async_wait();
    __syncthreads();
    if (i == 0) {
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half) scores[n][half] = load_shared(own.pair_address(pairs, n, half));
    }
    ChunkPosition next = p;
    ++next.h;
    if (i + 1 < count) {
      if (stage_count > 1) stage(i + 1).load(f, g, next);
      decay.load(f, next, token);
    }
    if (g.dg && i > 0 && own.warp == i % kWarps) {
      ChunkPosition before = p;
      --before.h;
      put_decay_gradient(f, g, before, workspaces[(i + 1) % 2]);
    }
    uint32_t a[P / 16][4];
#pragma unroll
    for (int k = 0; k < P / 16; ++k) s.d_o.load_a(a[k], own.row, k);
    if (own.sees_pairs()) add_pairs_of_head<P>(own, a, s.x, scores, workspace, d_scores);
    scale_rows<P>(a, workspace.head, own.row);
    add_product<P, N>(dq, a, s.state, own.quarter * (N / 4));
#pragma unroll
    for (int k = 0; k < P / 16; ++k) s.x.load_a(a[k], own.row, k);
    scale_rows<P>(a, workspace.tail, own.row);
    add_product<P, N>(dk, a, s.d_state, own.quarter * (N / 4));
    if (g.dg) {
      const float kept = warp_sum(dot_tiles<kThreads>(s.state.base, s.d_state.base, P * N * 2, static_cast<int>(threadIdx.x)));
      if (own.lane == 0) workspace.kept[own.warp] = kept * workspace.head[kChunk - 1];
    }
    if (i + 1 < count) {
      put_factors(workspaces[(i + 1) % 2], decay);
      p = next;
      if (stage_count == 1) {
        __syncthreads();
        stage(0).load(f, g, p);
      }
    }
  }
  __syncthreads();
  if (g.dg && own.warp == 0) put_decay_gradient(f, g, p, workspaces[(count + 1) % 2]);
  const SharedRows<N> q{stages}, k{stages + kChunk * N * 2};
  const int64_t rows = f.key_row(p, 0), stride = int64_t{f.groups} * f.keys;
  load_permuted<N, kThreads>(q, f.q + rows, stride, p.size, f.keys);
  load_permuted<N, kThreads>(k, f.k + rows, stride, p.size, f.keys);
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      store_shared(own.pair_address(pairs, n, half), pack_bf16(d_scores[n][2 * half], d_scores[n][2 * half + 1]));
  __syncthreads();
  for (int block = 0; block < 4; ++block) {
    uint32_t a[1][4];
    const SharedRows<N> keys{k.base + static_cast<uint32_t>(16 * block * N * 2)},
        queries{q.base + static_cast<uint32_t>(16 * block * N * 2)};
    if (block * 16 <= own.row) {
      pairs.load_a(a[0], own.row, block);
      add_product<16, N>(dq, a, keys, own.quarter * (N / 4));
    }
    if (block * 16 >= own.row) {
      load_a_transposed(a[0], pairs, 16 * block, own.row / 8);
      add_product<16, N>(dk, a, queries, own.quarter * (N / 4));
    }
  }
  if (g.dq) put_rows<N>(own, dq, g.dq + rows, stride, p.size, f.keys, g.add_q);
  if (g.dk) put_rows<N>(own, dk, g.dk + rows, stride, p.size, f.keys, g.add_k);
}

}  // namespace

void launch_key_gradients(Stream stream, const DecayForm& in, const KeyGradients& out) {
  if (hopper_key_gradients(stream, in, out)) return;
  int device = 0, limit = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  with_sizes(in, [&](auto p, auto n) {
    using Size = Sizes<p(), n()>;
    const int stages = Size::shared(2) + static_cast<int>(2 * sizeof(Workspace)) <= limit ? 2 : 1, bytes = Size::shared(stages);
    const Form<bf16> f(in);
    const auto kernel = key_gradients_kernel<p(), n()>;
    allow_shared(kernel, bytes);
    kernel<<<static_cast<unsigned>(in.x.dim(0) * f.chunks * f.groups), kThreads, bytes, stream>>>(f, out, stages);
  });
  check_launch();
}

}  // namespace saccade::cuda::decay
