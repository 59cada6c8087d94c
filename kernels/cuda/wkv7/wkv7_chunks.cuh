#pragma once
/// Shared by the kernels of RWKV-7's chunk form (wkv7_chunks.h).
#include "kernels/cuda/device/elements.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/cuda/scalar_decay/chunk_products.cuh"
#include "kernels/ops/wkv7/wkv7_chunks_cuda.h"

namespace saccade::cuda {

struct Wkv7Problem {
  int length, heads, chunks, blocks;  ///< blocks: B H chunks
  const bf16 *r, *k, *v, *a, *b, *dy;
  Elements log_w;
  bf16 *solve, *transition, *states, *d_states;
  float* last;
};

/// The chunk of this block.
template <int N>
struct Wkv7Chunk {
  int batch_head, count;  ///< b H + h; tokens
  int64_t first;          ///< element 0 of its first token
  int64_t stride;         ///< elements between its tokens
  int64_t at;             ///< batch_head · chunks + chunk

  __device__ explicit Wkv7Chunk(const Wkv7Problem& p)
      : batch_head(static_cast<int>(blockIdx.x) / p.chunks),
        count(min(kChunkTokens, p.length - static_cast<int>(blockIdx.x) % p.chunks * kChunkTokens)),
        first(((int64_t{batch_head / p.heads} * p.length + static_cast<int>(blockIdx.x) % p.chunks * kChunkTokens) * p.heads +
               batch_head % p.heads) *
              N),
        stride(int64_t{p.heads} * N),
        at(blockIdx.x) {}
  __device__ bf16* square(bf16* x) const { return x + at * kChunkTokens * kChunkTokens; }
  __device__ bf16* state(bf16* x) const { return x + (at + batch_head) * N * N; }  // chunks + 1 slots a batch_head
  template <class T>
  __device__ T* token(T* x, int i) const {
    return x + first + i * stride;
  }
};

/// The decays of a chunk: G in `sums` [64, kStride], and e^m, e^{G_L − m}, e^{G_L}.
template <int N, int kThreads = kChunkThreads>
struct Wkv7Decays {
  static constexpr int kStride = N + 4;
  static constexpr int kFloats = kChunkTokens * kStride;
  float middle[N], rest[N], all[N];
  float parts[kThreads];

  /// G of the chunk; ends behind a barrier.
  __device__ void load(const Wkv7Problem& p, const Wkv7Chunk<N>& chunk, float* sums) {
    constexpr int kSegments = kThreads / N, kRows = kChunkTokens / kSegments;
    const int channel = threadIdx.x % N, segment = threadIdx.x / N;
    float own[kRows], sum = 0;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int t = segment * kRows + i;
      own[i] = t < chunk.count ? p.log_w[chunk.first + t * chunk.stride + channel] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) own[i] = sum += own[i];
    parts[threadIdx.x] = sum;
    __syncthreads();
    float before = 0;
    for (int s = 0; s < segment; ++s) before += parts[s * N + channel];
#pragma unroll
    for (int i = 0; i < kRows; ++i) sums[(segment * kRows + i) * kStride + channel] = own[i] + before;
    __syncthreads();
    if (threadIdx.x < N) {
      const float m = sums[(kChunkTokens / 2 - 1) * kStride + channel], end = sums[(kChunkTokens - 1) * kStride + channel];
      middle[channel] = expf(m), rest[channel] = expf(end - m), all[channel] = expf(end);
    }
    __syncthreads();
  }
};

enum class Power { own, before, inverse };  ///< e^{G − m}, e^{E − m}, e^{m − G}

/// to = x ∘ its power, 64 rows.
template <int N>
__device__ __forceinline__ void put_factor(const Wkv7Chunk<N>& chunk, const float* sums, const bf16* x, Power power,
                                           const SharedMatrix<N>& to) {
  constexpr int kStride = Wkv7Decays<N>::kStride, kPieces = N / 8;
  for (int item = threadIdx.x; item < kChunkTokens * kPieces; item += blockDim.x) {
    const int i = item / kPieces, c = item % kPieces * 8;
    Pack<bf16> values{};
    if (i < chunk.count) values = load_pack(chunk.token(x, i) + c);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const float m = sums[(kChunkTokens / 2 - 1) * kStride + c + n];
      const float sum = power == Power::before ? (i > 0 ? sums[(i - 1) * kStride + c + n] : 0.0f) : sums[i * kStride + c + n];
      values.v[n] = from_float<bf16>(to_float(values.v[n]) * __expf(power == Power::inverse ? m - sum : sum - m));
    }
    store_pack(to.at(i, c), values);
  }
}

/// Rows of a state [N, N] ∘ factor.
template <int N>
__device__ __forceinline__ void put_state(const bf16* state, const float* factor, const SharedMatrix<N>& to) {
  constexpr int kPieces = N / 8;
  for (int item = threadIdx.x; item < N * kPieces; item += blockDim.x) {
    const int c = item / kPieces, j = item % kPieces * 8;
    Pack<bf16> values = load_pack(state + c * N + j);
#pragma unroll
    for (int n = 0; n < 8; ++n) values.v[n] = from_float<bf16>(to_float(values.v[n]) * factor[c]);
    store_pack(to.at(c, j), values);
  }
}

/// to = x yᵀ for j ≤ i (j < i when `strict`), else 0.
template <int kThreads = kChunkThreads, int N>
__device__ __forceinline__ void put_triangle(const SharedMatrix<N>& x, const SharedMatrix<N>& y, bool strict,
                                             const SharedMatrix<kChunkTokens>& to) {
  for_parts<kChunkTokens, kChunkTokens, kThreads>([&](auto& c, int row, int column) {
    add_product<Form::plain, Form::transposed, N>(c, x, row, y, column);
    each_pair(c, row, column, [&](int i, int j, float first, float second) {
      const int last = strict ? i - 1 : i;
      to.put(i, j, j <= last ? first : 0.0f, j + 1 <= last ? second : 0.0f);
    });
  });
}

/// All gradients, from the states and their gradients.
void wkv7_chunk_targets(Stream stream, const Wkv7Problem& problem, int64_t width, const cpu::Wkv7Gradients& out);

/// f(std::integral_constant<int, N>)
template <class F>
void with_wkv7_width(int64_t width, F&& f) {
  if (width == 32) return f(std::integral_constant<int, 32>{});
  f(std::integral_constant<int, 64>{});
}

}  // namespace saccade::cuda
