#pragma once
/// Shared by the kernels for the gradients of q and k.
#include "kernels/cuda/scalar_decay/scalar_decay_tiles.cuh"

namespace saccade::cuda::decay {

/// Per head: factors of tokens, and partial sums for the gradient of the decays: of P over its rows and columns, and of last ⟨dS, S⟩.
template <int kRowParts, int kKeptParts>
struct alignas(16) HeadWorkspace {
  float running[kChunk], head[kChunk], tail[kChunk], stepped[kChunk];  ///< stepped: running − log2 step
  float rows[kRowParts][kChunk], columns[4][kChunk], kept[kKeptParts];

  __device__ __forceinline__ void put(int token, const TokenDecay& decay) {
    running[token] = decay.running, stepped[token] = decay.running - log2f(decay.step);
    head[token] = exp2_approximate(decay.running);
    tail[token] = exp2_approximate(decay.end - decay.running) * decay.step;
  }
};

/// A left operand's 16 rows from `row` on, each scaled (by bf16 factors).
template <int P>
__device__ __forceinline__ void scale_rows(uint32_t (&a)[P / 16][4], const float* factors, int row) {
  const float first = factors[row + threadIdx.x % 32 / 4], second = factors[row + threadIdx.x % 32 / 4 + 8];
  const uint32_t pairs[2] = {pack_bf16(first, first), pack_bf16(second, second)};
#pragma unroll
  for (int k = 0; k < P / 16; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i) a[k][i] = multiply_pairs(a[k][i], pairs[i % 2]);
}

/// ⟨a, b⟩ of two tiles laid out alike, the part of one of kThreads threads.
template <int kThreads>
__device__ __forceinline__ float dot_tiles(uint32_t a, uint32_t b, int bytes, int thread) {
  float sum = 0;
#pragma unroll 2
  for (int at = thread * 16; at < bytes; at += kThreads * 16) {
    const uint4 x = load_shared_16(a + static_cast<uint32_t>(at)), y = load_shared_16(b + static_cast<uint32_t>(at));
    const uint32_t xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) sum = fmaf(low(xs[i]), low(ys[i]), fmaf(high(xs[i]), high(ys[i]), sum));
  }
  return sum;
}

/// dg of a head's chunk from its sums; one warp.
template <int kRowParts, int kKeptParts>
__device__ __forceinline__ void put_decay_gradient(const Form<bf16>& f, const KeyGradients& g, const ChunkPosition& p,
                                                   const HeadWorkspace<kRowParts, kKeptParts>& workspace) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t line = f.line(p);
  float d[2], written = 0;
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const int t = 2 * lane + e;
    const float writes = t < p.size ? g.writes[line + t] : 0.0f;
    d[e] = (t < p.size ? g.reads[line + t] : 0.0f) - writes;
#pragma unroll
    for (int r = 0; r < kRowParts; ++r) d[e] += workspace.rows[r][t];
#pragma unroll
    for (int r = 0; r < 4; ++r) d[e] -= workspace.columns[r][t];
    written += writes;
  }
  float behind = warp_sum(written);
#pragma unroll
  for (int w = 0; w < kKeptParts; ++w) behind += workspace.kept[w];
  float sum = d[0] + d[1];
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const float next = __shfl_down_sync(0xffffffffu, sum, offset);
    if (lane + offset < 32) sum += next;
  }
  if (2 * lane < p.size) g.dg[line + 2 * lane] = behind + sum;
  if (2 * lane + 1 < p.size) g.dg[line + 2 * lane + 1] = behind + (sum - d[0]);
}

/// Rows of q or k with their columns as the states have theirs.
template <int N, int kThreads, class Rows>
__device__ __forceinline__ void load_permuted(const Rows& to, const bf16* from, int64_t stride, int size, int keys) {
  for (int item = static_cast<int>(threadIdx.x); item < kChunk * N / 8; item += kThreads) {
    const int row = item / (N / 8), piece = item % (N / 8);
    uint4 x{0, 0, 0, 0};
    if (row < size && piece * 8 < keys) x = *reinterpret_cast<const uint4*>(from + row * stride + piece * 8);
    const uint32_t pairs[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int q = 0; q < 4; ++q) store_shared(to.at(row, piece / 4 * 4 + q) + static_cast<uint32_t>(piece % 4 * 4), pairs[q]);
  }
}

}  // namespace saccade::cuda::decay
