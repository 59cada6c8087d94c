#pragma once
/// Shared by the kernels of the delta rule's chunk form (delta_rule_chunks.h).
#include "kernels/cuda/device/elements.cuh"
#include "kernels/cuda/scalar_decay/chunk_products.cuh"
#include "kernels/ops/delta_rule/delta_rule_chunks_cuda.h"

namespace saccade::cuda {

constexpr int kSquareBytes = SharedMatrix<kChunkTokens>::bytes(kChunkTokens);
template <int W>
constexpr int kRowBytes = SharedMatrix<W>::bytes(kChunkTokens);

struct DeltaProblem {
  int length, heads, values, chunks, blocks;  ///< blocks: B H chunks
  float scale;
  const bf16 *q, *k, *v, *d_o;
  Elements beta, g;
  bf16 *solve, *solve_decayed, *transition, *states, *d_states, *x, *dv;
  float* last;
};

/// The chunk of this block.
template <int K>
struct DeltaChunk {
  int batch_head, index, count;  ///< b H + h; chunk; its tokens
  int64_t first;                 ///< row of its first token, (b T + t) H + h
  int64_t row_k, row_v;          ///< elements between its tokens
  int64_t at;                    ///< batch_head · chunks + index

  __device__ explicit DeltaChunk(const DeltaProblem& p)
      : batch_head(static_cast<int>(blockIdx.x) / p.chunks),
        index(static_cast<int>(blockIdx.x) % p.chunks),
        count(min(kChunkTokens, p.length - index * kChunkTokens)),
        first((int64_t{batch_head / p.heads} * p.length + index * kChunkTokens) * p.heads + batch_head % p.heads),
        row_k(int64_t{p.heads} * K),
        row_v(int64_t{p.heads} * p.values),
        at(blockIdx.x) {}
  template <class T>
  __device__ T* keys(T* x) const {
    return x + first * K;
  }
  template <class T>
  __device__ T* values(const DeltaProblem& p, T* x) const {
    return x + first * p.values;
  }
  __device__ bf16* square(bf16* x) const { return x + at * kChunkTokens * kChunkTokens; }
  __device__ bf16* state(const DeltaProblem& p, bf16* x) const {
    return x + (at + batch_head) * K * p.values;
  }  // chunks + 1 slots a batch_head
};

/// β and the decays of a chunk.
struct DeltaGates {
  float beta[kChunkTokens], running[kChunkTokens], head[kChunkTokens], tail[kChunkTokens];

  /// Called by the first warp; a barrier must follow.
  template <int K>
  __device__ void load(const DeltaProblem& p, const DeltaChunk<K>& chunk) {
    if (threadIdx.x >= 32) return;
    const int lane = threadIdx.x;
    float b[2] = {}, g[2] = {};
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (2 * lane + i < chunk.count) {
        const int64_t row = chunk.first + int64_t{2 * lane + i} * p.heads;
        b[i] = p.beta[row];
        if (p.g) g[i] = p.g[row];
      }
    float sum = g[0] + g[1];
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const float before = __shfl_up_sync(0xffffffffu, sum, offset);
      if (lane >= offset) sum += before;
    }
    const float all = __shfl_sync(0xffffffffu, sum, 31), G[2] = {sum - g[1], sum};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      beta[2 * lane + i] = b[i];
      running[2 * lane + i] = G[i];
      head[2 * lane + i] = expf(G[i]);
      tail[2 * lane + i] = expf(all - G[i]);
    }
  }
  __device__ __forceinline__ float gamma(int i, int j) const { return j <= i ? __expf(running[i] - running[j]) : 0.0f; }
};

/// p = P of the chunk.
template <int K>
__device__ __forceinline__ void put_scores(const DeltaProblem& problem, const DeltaGates& gates, const SharedMatrix<K>& q,
                                           const SharedMatrix<K>& k, const SharedMatrix<kChunkTokens>& p) {
  for_parts<kChunkTokens, kChunkTokens>([&](auto& c, int row, int column) {
    add_product<Form::plain, Form::transposed, K>(c, q, row, k, column);
    each_pair(c, row, column, [&](int i, int j, float x, float y) {
      p.put(i, j, problem.scale * gates.gamma(i, j) * x, problem.scale * gates.gamma(i, j + 1) * y);
    });
  });
}

/// A chunk's own part of the gradient of the state at its start, into d_states.
void delta_local_gradients(Stream stream, const DeltaRule& in, const DeltaProblem& p);
/// Y' into p.dv, from the gradients of the states.
void delta_value_gradients(Stream stream, const DeltaRule& in, const DeltaProblem& p);
/// The gradients of q, k, β, g, and of v where its gradient is added; all inputs are in the workspace.
void delta_chunk_targets(Stream stream, const DeltaRule& in, const DeltaProblem& problem, const DeltaTargets& out);

/// f(K, width of a block of values), both as std::integral_constant
template <class F>
void with_delta_widths(int64_t keys, int64_t values, F&& f) {
  const auto with_values = [&](auto k) {
    if (values % 96 == 0) return f(k, std::integral_constant<int, 96>{});
    if (values % 64 == 0) return f(k, std::integral_constant<int, 64>{});
    f(k, std::integral_constant<int, 32>{});
  };
  if (keys == 32) return with_values(std::integral_constant<int, 32>{});
  if (keys == 64) return with_values(std::integral_constant<int, 64>{});
  with_values(std::integral_constant<int, 96>{});
}

}  // namespace saccade::cuda
