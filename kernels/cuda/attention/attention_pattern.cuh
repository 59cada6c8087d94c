#pragma once
/// The attention pattern: which queries see which keys, and how blocks share them. Device code only.
#include <cuda_fp16.h>

#include "kernels/cuda/device/device_code.cuh"
#include "kernels/ops/attention/alibi.h"
#include "kernels/ops/attention/attention_cuda.h"

namespace saccade::cuda {

constexpr float kLog2e = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

/// ALiBi slope of head h (0-based).
__device__ __forceinline__ float alibi_slope(int h, int heads, bool released) {
  const AlibiSlope slope = alibi_slope_of(h, heads, released);
  return exp2f(-8.0f * static_cast<float>(slope.numerator) / static_cast<float>(slope.denominator));
}

/// The values of an AttentionTask as a kernel argument.
struct Pattern {
  int length, heads, width;
  int window;  ///< 0: none
  int chunk;   ///< 0: all earlier keys; else queries in order see their own chunk only, gathered ones the chunk they chose
  float scale;
  bool alibi, released_alibi;
  bool local;  ///< for gradients of keys: whether the queries of the key's own chunk count
  /// Gathered queries (QueryLists) of one top-k slot; null: queries in order.
  const int32_t *selected, *order, *offsets, *tiles, *extras, *extra_offsets;
  int chunks, group_chunks, groups, max_tiles, max_extras, top_k, slot;

  __device__ int64_t stride() const { return int64_t{heads} * width; }
  __device__ float slope(int h) const { return alibi ? alibi_slope(h, heads, released_alibi) : 0.0f; }
  __device__ int64_t list(int batch_head) const { return int64_t{batch_head} * top_k + slot; }
  __device__ int chosen(int batch_head, int t) const { return selected[(int64_t{batch_head} * length + t) * top_k + slot]; }
};

/// Keys [low, high) that a query sees.
struct Sight {
  int low, high;
};
__device__ __forceinline__ Sight sight(const Pattern& p, int t, int chosen) {
  int low = p.window > 0 ? max(0, t - p.window + 1) : 0;
  if (chosen >= 0) return {max(low, chosen * p.chunk), (chosen + 1) * p.chunk};
  if (p.chunk > 0) low = max(low, t - t % p.chunk);
  return {low, t + 1};
}

/// The queries of a block, and all keys that any of them sees.
struct QueryBlock {
  int batch_head, first, count;
  const int32_t* order;  ///< positions; null: first + r
  int key_begin, key_end;

  __device__ int position(int r) const { return order ? order[r] : first + r; }
};

/// Block (x, y) of a grid of (tiles, batch x heads): the longest first.
template <bool kGather, int kRows>
__device__ __forceinline__ QueryBlock query_block(const Pattern& p) {
  const int batch_head = blockIdx.y;
  if constexpr (kGather) {
    const int32_t* tile = p.tiles + (p.list(batch_head) * p.max_tiles + blockIdx.x) * 2;
    const int group = tile[0], at = tile[1];
    if (group < 0) return {batch_head, 0, 0, nullptr, 0, 0};
    const int end = p.offsets[p.list(batch_head) * (p.chunks + 1) + min((group + 1) * p.group_chunks, p.chunks)];
    const int key = group * p.group_chunks * p.chunk;
    return {batch_head,
            0,
            min(kRows, end - at),
            p.order + p.list(batch_head) * p.length + at,
            key,
            min(p.length, key + p.group_chunks * p.chunk)};
  } else {
    const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kRows, count = min(kRows, p.length - first);
    return {batch_head, first, count, nullptr, sight(p, first, -1).low, first + count};
  }
}

/// The keys of a block, and the queries that see them: positions [first_query, first_query + in_order), then a list.
struct KeyBlock {
  int batch_head, key, count;
  int first_query, in_order, listed;
  const int32_t* order;
  int extra_begin, extra_end;  ///< partial sums of this group's further queries
  int piece;                   ///< part of a long chunk

  __device__ int queries() const { return in_order + listed; }
  __device__ int position(int i) const { return i < in_order ? first_query + i : order[i - in_order]; }
};

/// Blocks per chunk, for chunks longer than kRows.
__host__ __device__ inline int chunk_pieces(int chunk, int rows) { return chunk > rows ? (chunk + rows - 1) / rows : 1; }

/// Block (x, y) of a grid of (key tiles, batch x heads), or (extras · pieces, batch x heads).
template <int kRows>
__device__ __forceinline__ KeyBlock key_block(const Pattern& p, bool extra) {
  KeyBlock block{};
  block.batch_head = blockIdx.y;
  if (p.chunk == 0) {
    block.key = blockIdx.x * kRows;
    block.count = min(kRows, p.length - block.key);
    block.first_query = block.key;
    block.in_order = (p.window > 0 ? min(p.length, block.key + block.count - 1 + p.window) : p.length) - block.key;
    return block;
  }
  const int pieces = chunk_pieces(p.chunk, kRows);
  int group = blockIdx.x / pieces, from = 0;
  block.piece = blockIdx.x % pieces;
  if (extra) {
    const int32_t* e = p.extras + (p.list(block.batch_head) * p.max_extras + group) * 2;
    group = e[0], from = e[1];
    if (group < 0) return block;
  }
  const int begin = group * p.group_chunks * p.chunk, end = min(p.length, begin + p.group_chunks * p.chunk);
  block.key = begin + block.piece * kRows;
  block.count = min(kRows, end - block.key);
  if (block.count <= 0) return block;
  const int32_t* offsets = p.offsets + p.list(block.batch_head) * (p.chunks + 1);
  const int last = offsets[min((group + 1) * p.group_chunks, p.chunks)];
  if (!extra) {
    from = offsets[group * p.group_chunks];
    block.first_query = block.key;
    block.in_order = p.local ? end - block.key : 0;
    const int32_t* extras = p.extra_offsets + p.list(block.batch_head) * (p.groups + 1) + group;
    block.extra_begin = extras[0], block.extra_end = extras[1];
  }
  block.listed = min(kExtraQueries, last - from);
  block.order = p.order + p.list(block.batch_head) * p.length + from;
  return block;
}

template <class T>
struct ForwardArgs {
  Pattern p;
  const T *q, *k, *v;
  int64_t q_batch, k_batch, v_batch;  ///< elements between sequences; 0: shared
  T* o;
  float *lse, *entropy;
  int32_t* best;
  bool resume;  ///< o, lse (and entropy) hold the results over earlier keys
};

template <class T>
struct BackwardArgs {
  Pattern p;
  const T *q, *k, *v, *d_o;
  int64_t q_batch, k_batch, v_batch;
  const float *lse, *delta;
  const int32_t* best;  ///< dv takes dO of the queries that selected the key instead of Pᵀ dO
  T *dq, *dk, *dv;
  bool add_dq, add_dk, add_dv;
  float* partial;           ///< [batch x heads, max_extras, pieces, 2, rows, width] sums of further queries
  int64_t gradient_stride;  ///< elements between positions of dq, dk, dv
  const __half2* angles;    ///< [length, d / 2] by which dq and dk are rotated back, on Hopper; null: none

  /// Index of the first element of a position of one (sequence, head).
  __device__ int64_t gradient(int batch_head, int t) const {
    return (int64_t{batch_head / p.heads} * p.length + t) * gradient_stride + batch_head % p.heads * p.width;
  }
};

Pattern pattern(const AttentionTask& task, DType type);

/// Kernels for any type and any width up to 256, on ordinary cores.
void plain_forward(Stream stream, const AttentionForward& in);
void plain_backward(Stream stream, const AttentionBackward& in);
/// Tensor cores: bf16, widths 16, 32, 64, 128.
void tensor_forward(Stream stream, const AttentionForward& in);
void tensor_backward(Stream stream, const AttentionBackward& in);

template <class T>
ForwardArgs<T> forward_args(const AttentionForward& in);
template <class T>
BackwardArgs<T> backward_args(const AttentionBackward& in);

/// f(integral_constant) for a width with a tensor-core kernel.
template <class F>
void for_width(int64_t width, F&& f) {
  if (width == 16) return f(std::integral_constant<int, 16>{});
  if (width == 32) return f(std::integral_constant<int, 32>{});
  if (width == 64) return f(std::integral_constant<int, 64>{});
  f(std::integral_constant<int, 128>{});
}

/// Lets a kernel take `bytes` of dynamic shared memory.
template <class Kernel>
void allow_shared(Kernel kernel, int bytes) {
  if (bytes > 48 * 1024) check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

}  // namespace saccade::cuda
