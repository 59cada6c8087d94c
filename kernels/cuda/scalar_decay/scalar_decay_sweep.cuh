#pragma once
/// Steps of a pass over the chunks of a head. A warp owns 16 columns of x; accumulators are [column, token] or [column, key].
#include "kernels/cuda/device/hopper.cuh"
#include "kernels/cuda/scalar_decay/scalar_decay_tiles.cuh"

namespace saccade::cuda::decay {

/// Factors of a chunk's tokens and sums over a head's columns.
template <int kWarps>
struct TokenWorkspace {
  float running[kChunk], read[kChunk], write[kChunk], step[kChunk];
  float stepped[kChunk];  ///< running − log2 step: a step with its column
  float sums[3][kWarps][kChunk];
};

/// Whether the four warps of a head of 64 multiply as one warpgroup (wgmma).
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
template <int P>
constexpr bool kWarpgroup = P == 64;
#else
template <int P>
constexpr bool kWarpgroup = false;
#endif

/// x [16 columns, 64 tokens] as the left operand of products over tokens: element by element where an accumulator has (column, token).
using Values = uint32_t[4][4];
using Output = float[8][4];

template <int P>
__device__ __forceinline__ void load_values(Values& x, const SharedRows<P>& rows) {
#pragma unroll
  for (int k = 0; k < 4; ++k) load_a_transposed(x[k], rows, 16 * k, static_cast<int>(threadIdx.x) / 32 * 2);
}
__device__ __forceinline__ float value(const Values& x, int n, int i) {
  const uint32_t pair = x[n / 2][n % 2 * 2 + i / 2];
  return i % 2 ? high(pair) : low(pair);
}

/// to[token] = Σ over a warp's columns of product(tile, element); after the sums a lane holds two tokens.
template <class Product>
__device__ __forceinline__ void put_token_sums(float* to, const Product& product) {
  float sums[16];
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e) sums[2 * n + e] = product(n, e) + product(n, 2 + e);
  lane_sums<16, 16, 4>(sums);
  *reinterpret_cast<float2*>(to + threadIdx.x % 32 * 2) = {sums[0], sums[1]};
}

/// c ∘ factor of the token
__device__ __forceinline__ void scale_tokens(Output& c, const float* factors) {
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const float2 f = *reinterpret_cast<const float2*>(factors + 8 * n + threadIdx.x % 4 * 2);
    c[n][0] *= f.x, c[n][1] *= f.y, c[n][2] *= f.x, c[n][3] *= f.y;
  }
}

/// Scores become mix, in place; elements above the 16 x 16 blocks of the diagonal become zero or are not read. A thread owns eight columns.
template <bool kForward, bool kWhole, int kThreads, int kWarps>
__device__ __forceinline__ void mix_scores(const SharedRows<kChunk>& scores, const TokenWorkspace<kWarps>& workspace, float skip) {
  constexpr int kRows = kThreads / 8;
  const int piece = static_cast<int>(threadIdx.x) % 8;
  float column[8];
#pragma unroll
  for (int e = 0; e < 8; ++e) column[e] = kForward ? workspace.stepped[piece * 8 + e] : workspace.running[piece * 8 + e];
#pragma unroll
  for (int r = 0; r < kChunk / kRows; ++r) {
    const int i = static_cast<int>(threadIdx.x) / 8 + r * kRows, block = i / 16;
    if (block < piece / 2) {
      if (kWhole) store_shared_16(scores.at(i, piece), {0, 0, 0, 0});
      continue;
    }
    const float row = workspace.running[i];
    const uint4 given = load_shared_16(scores.at(i, piece));
    const uint32_t pairs[4] = {given.x, given.y, given.z, given.w};
    float m[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) m[e] = (e % 2 ? high(pairs[e / 2]) : low(pairs[e / 2])) * exp2_approximate(row - column[e]);
    if (block == piece / 2) {
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int j = piece * 8 + e;
        if (kForward && j == i) m[e] += skip;
        if (j > i) m[e] = 0;
      }
    }
    store_shared_16(scores.at(i, piece), {pack_bf16(m[0], m[1]), pack_bf16(m[2], m[3]), pack_bf16(m[4], m[5]), pack_bf16(m[6], m[7])});
  }
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/// 64 columns of an accumulator.
__device__ __forceinline__ float (&flat(float (&c)[8][4]))[32] { return reinterpret_cast<float(&)[32]>(c); }
template <int kSize>
__device__ __forceinline__ float (&flat(float (&c)[kSize][4], int tile))[32] {
  return reinterpret_cast<float(&)[32]>(c[8 * tile]);
}
#endif

/// out += mix values: sums over the tokens s ≤ t (kForward), or s ≥ t, of a token t.
template <bool kForward, int P>
__device__ __forceinline__ void add_mixed(Output& out, Values& values, const SharedRows<kChunk>& mix) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if constexpr (kWarpgroup<P>) {
    hopper::begin_products();
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k)
      if constexpr (kForward)
        hopper::multiply(flat(out), values[k], hopper::rows_of_64(mix.base) + k * hopper::kNextColumns, true);
      else
        hopper::multiply_transposed(flat(out), values[k], hopper::rows_of_64(mix.base) + k * hopper::kNextRows, true);
    hopper::commit_products();
    hopper::finish_products<0>();
    hopper::hold(values), hopper::hold(flat(out));
  } else
#endif
  {
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        if (kForward ? n < k : n > k) continue;
        uint32_t b[4];
        if (kForward)
          mix.load_b(b, 16 * n, k);
        else
          mix.load_b_transposed(b, 16 * k, n);
        multiply(out[2 * n], values[k], b[0], b[1]);
        multiply(out[2 * n + 1], values[k], b[2], b[3]);
      }
  }
}

/// 16 keys of a state as the left operand.
template <int N>
__device__ __forceinline__ void pack_state(uint32_t (&a)[4], const float (&state)[N / 8][4], int k) {
#pragma unroll
  for (int i = 0; i < 4; ++i) a[i] = pack_bf16(state[2 * k + i / 2][i % 2 * 2], state[2 * k + i / 2][i % 2 * 2 + 1]);
}

/// out = S rowᵀ of all tokens.
template <int P, int N>
__device__ __forceinline__ void read_state(Output& out, const float (&state)[N / 8][4], const KeyRows<N>& rows) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if constexpr (kWarpgroup<P>) {
#pragma unroll
    for (int tile = 0; tile < N / 64; ++tile) {
      uint32_t a[4][4];
#pragma unroll
      for (int k = 0; k < 4; ++k) pack_state<N>(a[k], state, 4 * tile + k);
      hopper::begin_products();
#pragma unroll
      for (int k = 0; k < 4; ++k)
        hopper::multiply(flat(out), a[k], hopper::rows_of_64(rows.tile(tile).base) + static_cast<uint32_t>(k) * hopper::kNextColumns,
                         tile + k > 0);
      hopper::commit_products();
      hopper::finish_products<0>();
      hopper::hold(a), hopper::hold(flat(out));
    }
  } else
#endif
  {
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) out[n][i] = 0;
#pragma unroll
    for (int k = 0; k < N / 16; ++k) {
      uint32_t a[4];
      pack_state<N>(a, state, k);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        uint32_t b[4];
        rows.load_b(b, 16 * n, k);
        multiply(out[2 * n], a, b[0], b[1]);
        multiply(out[2 * n + 1], a, b[2], b[3]);
      }
    }
  }
}

/// 16 tokens of write ∘ values.
__device__ __forceinline__ void scale_values(uint32_t (&a)[4], const Values& values, const float* write, int k) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 f = *reinterpret_cast<const float2*>(write + 16 * k + i / 2 * 8 + threadIdx.x % 4 * 2);
    a[i] = pack_bf16(low(values[k][i]) * f.x, high(values[k][i]) * f.y);
  }
}

/// S ← last S + (write ∘ values) rows
template <int P, int N>
__device__ __forceinline__ void write_state(float (&state)[N / 8][4], const Values& values, const float* write, float last,
                                            const KeyRows<N>& rows) {
#pragma unroll
  for (int n = 0; n < N / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) state[n][i] *= last;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if constexpr (kWarpgroup<P>) {
    uint32_t a[4][4];
#pragma unroll
    for (int k = 0; k < 4; ++k) scale_values(a[k], values, write, k);
    hopper::begin_products();
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int tile = 0; tile < N / 64; ++tile)
        hopper::multiply_transposed(flat(state, tile), a[k],
                                    hopper::rows_of_64(rows.tile(tile).base) + static_cast<uint32_t>(k) * hopper::kNextRows, true);
    hopper::commit_products();
    hopper::finish_products<0>();
    hopper::hold(a);
#pragma unroll
    for (int tile = 0; tile < N / 64; ++tile) hopper::hold(flat(state, tile));
  } else
#endif
  {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      uint32_t a[4];
      scale_values(a, values, write, k);
#pragma unroll
      for (int n = 0; n < N / 16; ++n) {
        uint32_t b[4];
        rows.load_b_transposed(b, 16 * k, n);
        multiply(state[2 * n], a, b[0], b[1]);
        multiply(state[2 * n + 1], a, b[2], b[3]);
      }
    }
  }
}

/// use(element of [keys, P], register)
template <int P, int N, class Use>
__device__ __forceinline__ void for_state(float (&state)[N / 8][4], int keys, const Use& use) {
  const int lane = static_cast<int>(threadIdx.x) % 32, p = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
#pragma unroll
  for (int n = 0; n < N / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (8 * n < keys) use((8 * n + lane % 4 * 2 + i % 2) * P + p + i / 2 * 8, state[n][i]);
}

template <int P, int N>
__device__ __forceinline__ void store_state(const float (&state)[N / 8][4], const Form<bf16>& f, const ChunkPosition& p, bf16* states) {
  const int lane = static_cast<int>(threadIdx.x) % 32, row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    bf16* to = states + state_row<P, N>(f, p.b, p.c, p.h, row + 8 * half) + lane % 4 * 8;
#pragma unroll
    for (int g = 0; g < N / 32; ++g) {
      uint32_t pairs[4];
#pragma unroll
      for (int u = 0; u < 4; ++u) pairs[u] = pack_bf16(state[4 * g + u][2 * half], state[4 * g + u][2 * half + 1]);
      *reinterpret_cast<uint4*>(to + 32 * g) = {pairs[0], pairs[1], pairs[2], pairs[3]};
    }
  }
}

/// out [column, token] to rows of tokens.
template <int P>
__device__ __forceinline__ void store_output(const Output& out, const SharedRows<P>& rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = 8 * n + lane % 4 * 2 + i % 2;
      const uint32_t at = rows.at(token, warp * 2 + i / 2) + static_cast<uint32_t>(lane / 4 * 2);
      asm volatile("st.shared.u16 [%0], %1;" ::"r"(at), "h"(__bfloat16_as_ushort(__float2bfloat16_rn(out[n][i]))) : "memory");
    }
}

}  // namespace saccade::cuda::decay
