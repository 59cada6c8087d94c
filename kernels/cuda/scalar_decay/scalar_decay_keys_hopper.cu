// Gradients of q and k and of the log decays on Hopper's own matrix instructions (wgmma), for heads of 64 by 72 to 128 keys. As in
// scalar_decay_keys.cu a block owns a chunk of a group and walks its heads; one warpgroup makes dq, one dk, two half of the pairs each.
#include "kernels/cuda/attention/attention_hopper.cuh"
#include "kernels/cuda/scalar_decay/scalar_decay_keys.cuh"

namespace saccade::cuda::decay {
namespace {

constexpr int kP = 64, kN = 128, kStages = 4, kThreads = 512;
constexpr uint32_t kTile = 64 * 64 * 2, kStage = 6 * kTile;
constexpr int kShared = static_cast<int>(kTileAlignment + kTile + kStages * kStage);

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// A head's tiles.
struct Stage {
  SharedRows<64> d_o, x;
  KeyRows<kN> state, d_state;
  explicit __device__ Stage(uint32_t base) : d_o{base}, x{base + kTile}, state{base + 2 * kTile}, d_state{base + 4 * kTile} {}

  __device__ void load(const Form<bf16>& f, const KeyGradients& g, const ChunkPosition& p) const {
    const int64_t row = f.value_row(p, 0), stride = int64_t{f.heads} * kP, at = state_row<kP, kN>(f, p.b, p.c, p.h, 0);
    copy_rows<kChunk, kThreads>(d_o, g.d_o + row, stride, p.size);
    copy_rows<kChunk, kThreads>(x, f.x + row, stride, p.size);
    state.copy<kThreads>(g.states + at, kN, kP);
    d_state.copy<kThreads>(g.d_states + at, kN, kP);
  }
};

using Workspace = HeadWorkspace<2, 8>;

enum Role { queries, keys, left_pairs, right_pairs };

/// c [64 x 128] += a [64 x 64] b
__device__ __forceinline__ void add_product(float (&c)[2][32], const uint32_t (&a)[4][4], const KeyRows<kN>& b) {
#pragma unroll
  for (int k = 0; k < 4; ++k)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      hopper::multiply_transposed(c[half], a[k], hopper::rows_of_64(b.tile(half).base) + static_cast<uint32_t>(k) * hopper::kNextRows,
                                  true);
}

__device__ __forceinline__ void load_rows(uint32_t (&a)[4][4], const SharedRows<64>& rows, int row) {
#pragma unroll
  for (int k = 0; k < 4; ++k) rows.load_a(a[k], row, k);
}

/// 16 rows and 32 columns of pairs, a warp's. A thread has elements i of four tiles n.
struct Pairs {
  int first_row, first_column, lane;
  __device__ Pairs(int warp) : first_row(warp % 4 * 16), first_column(warp / 4 % 2 * 32), lane(static_cast<int>(threadIdx.x) % 32) {}
  __device__ bool seen() const { return first_column < first_row + 16; }
  __device__ int row(int i) const { return first_row + lane / 4 + i / 2 * 8; }
  __device__ int column(int n, int i) const { return first_column + 8 * n + lane % 4 * 2 + i % 2; }
  /// Elements 0, 1 (2, 3 with `half`) of tile n in memory.
  __device__ uint32_t address(const SharedRows<kChunk>& rows, int n, int half) const {
    return rows.at(row(2 * half), first_column / 8 + n) + static_cast<uint32_t>(lane % 4 * 4);
  }
};

/// d_scores += F of a head, and the sums of P over rows and columns.
__device__ __forceinline__ void add_pairs_of_head(const Pairs& own, const Stage& s, const uint32_t (&scores)[4][2], Workspace& workspace,
                                                  float (&d_scores)[4][4]) {
  uint32_t a[4][4];
  load_rows(a, s.d_o, own.first_row);
  float d_m[4][4] = {};
#pragma unroll
  for (int k = 0; k < 4; ++k)
#pragma unroll
    for (int n = 0; n < 4; n += 2) {
      uint32_t b[4];
      s.x.load_b(b, own.first_column + 8 * n, k);
      multiply(d_m[n], a[k], b[0], b[1]);
      multiply(d_m[n + 1], a[k], b[2], b[3]);
    }
  const float running[2] = {workspace.running[own.row(0)], workspace.running[own.row(2)]};
  float row_sums[2] = {}, sums[8] = {};
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const float2 stepped = *reinterpret_cast<const float2*>(workspace.stepped + own.column(n, 0));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int t = own.row(i), j = own.column(n, i);
      const float gamma = exp2_approximate(running[i / 2] - (i % 2 ? stepped.y : stepped.x));
      const float value = j > t ? 0.0f : d_m[n][i] * gamma;
      d_scores[n][i] += value;
      const float product = j < t ? value * (i % 2 ? high(scores[n][i / 2]) : low(scores[n][i / 2])) : 0.0f;
      row_sums[i / 2] += product;
      sums[2 * n + i % 2] += product;
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    row_sums[half] = quad_sum(row_sums[half]);
    if (own.lane % 4 == 0) workspace.rows[own.first_column / 32][own.row(2 * half)] = row_sums[half];
  }
  lane_sums<8, 16, 4>(sums);  // of eight lanes that share columns each ends with one
  workspace.columns[own.first_row / 16][own.column(own.lane / 8, own.lane / 4)] = sums[0];
}

/// sum += dO Sᵀ of a head for queries, X dS'ᵀ for keys, rows decayed; with `decays` also this warp's share of e^{G_L} ⟨dS', S⟩.
__device__ __forceinline__ void add_states_of_head(float (&sum)[2][32], Role role, const Stage& s, Workspace& workspace, bool decays) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32, first_row = warp % 4 * 16;
  uint32_t a[4][4];
  load_rows(a, role == queries ? s.d_o : s.x, first_row);
  scale_rows<kP>(a, role == queries ? workspace.head : workspace.tail, first_row);
  hopper::begin_products();
  add_product(sum, a, role == queries ? s.state : s.d_state);
  hopper::commit_products();
  if (decays) {
    const float kept = warp_sum(dot_tiles<256>(s.state.base, s.d_state.base, 2 * kTile, static_cast<int>(threadIdx.x)));
    if (lane == 0) workspace.kept[warp] = kept * workspace.head[kChunk - 1];
  }
  hopper::finish_products<0>();
  hopper::hold(a), hopper::hold(sum[0]), hopper::hold(sum[1]);
}

/// A warp's 16 rows of dq or dk, their columns back in order.
__device__ __forceinline__ void put_rows(const float (&c)[2][32], int row, bf16* to, int64_t stride, int size, int keys, bool add) {
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int group = 0; group < kN / 32; ++group) {
      const int column = 32 * group + static_cast<int>(threadIdx.x) % 4 * 8;
      if (row + 8 * half >= size || column >= keys) continue;
      uint32_t pairs[4];
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const int at = (group % 2 * 4 + u) * 4 + 2 * half;
        pairs[u] = pack_bf16(c[group / 2][at], c[group / 2][at + 1]);
      }
      put_16(to + (row + 8 * half) * stride + column, {pairs[0], pairs[1], pairs[2], pairs[3]}, add);
    }
}

#endif

__global__ void __launch_bounds__(kThreads, 1) key_gradients_kernel(Form<bf16> f, KeyGradients g) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ char shared[];
  __shared__ Workspace workspaces[2];
  const SharedRows<kChunk> pairs{aligned_tiles(shared)};
  const uint32_t stages = pairs.base + kTile;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32, first_row = warp % 4 * 16;
  const Role role = static_cast<Role>(warp / 4);
  const Pairs own(warp);
  ChunkPosition p = f.place(static_cast<int>(blockIdx.x), f.groups);
  const int count = f.heads / f.groups;
  p.h = p.group * count;
  const auto stage = [&](int i) { return Stage(stages + static_cast<uint32_t>(i % kStages) * kStage); };
  const auto head = [&](int i) {
    ChunkPosition next = p;
    next.h += i;
    return next;
  };
  const auto fetch = [&](int i) {
    if (i < count) stage(i).load(f, g, head(i));
    copy_async_commit();
  };
  copy_rows<kChunk, kThreads>(pairs, g.scores + f.scores(p), kChunk, kChunk);
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) fetch(i);
  for (int i = static_cast<int>(threadIdx.x); i < 2 * static_cast<int>(sizeof(Workspace) / sizeof(float)); i += kThreads)
    reinterpret_cast<float*>(workspaces)[i] = 0;
  __syncthreads();
  // The two warps whose pairs lie above the diagonal see to the decays.
  const bool decays = warp == 12 || warp == 13;
  const int token = static_cast<int>(threadIdx.x) % kChunk;
  TokenDecay decay;
  if (decays) decay.load(f, p, token), workspaces[0].put(token, decay);

  float sum[2][32] = {};  // of dq or dk; the first 16 of d_scores
  float(&d_scores)[4][4] = reinterpret_cast<float(&)[4][4]>(sum[0]);
  uint32_t scores[4][2];
  for (int i = 0; i < count; ++i) {
    Workspace& workspace = workspaces[i % 2];
    const Stage s = stage(i);
    copy_async_wait_but<kStages - 2>();
    publish_writes();
    __syncthreads();
    fetch(i + kStages - 1);
    if (role <= keys) {
      add_states_of_head(sum, role, s, workspace, g.dg != nullptr);
    } else if (own.seen()) {
      if (i == 0)
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
          for (int half = 0; half < 2; ++half) scores[n][half] = load_shared(own.address(pairs, n, half));
      add_pairs_of_head(own, s, scores, workspace, d_scores);
    } else if (decays) {
      if (i + 1 < count) decay.load(f, head(i + 1), token);
      if (g.dg && i > 0 && warp == 12 + i % 2) put_decay_gradient(f, g, head(i - 1), workspaces[(i + 1) % 2]);
      if (i + 1 < count) workspaces[(i + 1) % 2].put(token, decay);
    }
  }
  __syncthreads();
  if (g.dg && warp == 12) put_decay_gradient(f, g, head(count - 1), workspaces[(count + 1) % 2]);
  const KeyRows<kN> q{stages}, k{stages + 2 * kTile};
  const int64_t rows = f.key_row(p, 0), stride = int64_t{f.groups} * f.keys;
  load_permuted<kN, kThreads>(q, f.q + rows, stride, p.size, f.keys);
  load_permuted<kN, kThreads>(k, f.k + rows, stride, p.size, f.keys);
  if (role > keys)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        store_shared(own.address(pairs, n, half), pack_bf16(d_scores[n][2 * half], d_scores[n][2 * half + 1]));
  publish_writes();
  __syncthreads();
  if (role > keys) return;
  uint32_t a[4][4];
  if (role == queries) {
    load_rows(a, pairs, first_row);
  } else {
#pragma unroll
    for (int n = 0; n < 4; ++n) load_a_transposed(a[n], pairs, 16 * n, first_row / 8);
  }
  hopper::begin_products();
  add_product(sum, a, role == queries ? k : q);
  hopper::commit_products();
  hopper::finish_products<0>();
  hopper::hold(a), hopper::hold(sum[0]), hopper::hold(sum[1]);
  bf16* to = role == queries ? g.dq : g.dk;
  if (to) put_rows(sum, first_row + lane / 4, to + rows, stride, p.size, f.keys, role == queries ? g.add_q : g.add_k);
#endif
}

}  // namespace

bool hopper_key_gradients(Stream stream, const DecayForm& in, const KeyGradients& out) {
  if (in.x.dim(3) != kP || padded_keys(in) != kN || !hopper::available(in.x.device().index)) return false;
  const Form<bf16> f(in);
  allow_shared(key_gradients_kernel, kShared);
  key_gradients_kernel<<<static_cast<unsigned>(in.x.dim(0) * f.chunks * f.groups), kThreads, kShared, stream>>>(f, out);
  check_launch();
  return true;
}

}  // namespace saccade::cuda::decay
