#pragma once
#include <algorithm>

#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/error.h"
#include "kernels/engine/token_position.h"
#include "kernels/ops/attention/head_shape.h"

namespace saccade::cuda {

/// cache[b, first + i] = rows[b, i]; equal dtypes; the cache's batch may be 1.
void append_rows(Stream stream, const Tensor& rows, const Tensor& cache, const TokenPosition& position);
/// to[b, 0 … n − 1] = from[index[b], 0 … n − 1], n elements of each sequence; from one sequence where `from` has one.
void copy_sequences(Stream stream, const Tensor& from, const Tensor& index, const Tensor& to, int64_t n);
/// position += n; i32 [1] or [B].
void advance(Stream stream, const Tensor& position, int64_t n);

/// Queries against the cache: q [B or 1, n, H, d], k [B or 1, capacity, H, d], v [B, capacity, H, d], o [B, n, H, d]; f32 or bf16.
struct CachedTask {
  HeadShape shape;  ///< of queries
  ScoreOptions options;
  Tensor q, k, v, o;
  TokenPosition position;
};

/// Keys per block; what blocks found is merged in order.
constexpr int64_t kSplitKeys = 256;
/// Keys per chunk of cached_attention, twice as many and so on for queries that see more than kMostChunks of them; a window may cut one
/// more.
constexpr int64_t kAttentionKeys = 512, kMostChunks = 32;
/// Queries with which cached_attention takes a block for each; with fewer, a block for each chunk of each.
constexpr int64_t kEnoughQueries = 512;
/// Numbers that a block of cached_attention leaves of a chunk: for each of its 128 threads greatest score, sum of exponentials, and 8 of
/// the unnormalised output.
constexpr int64_t kAttentionPartial = 128 * (2 + 8);
/// Queries per pass, which share one workspace; more queries take several passes.
constexpr int64_t kSplitQueries = 8;
/// Queries of all heads and sequences in a pass of cached_attention.
constexpr int64_t kMostQueries = int64_t{1} << 18;
/// Splits of `keys` keys that cover what a query can see.
inline int64_t key_splits(const ScoreOptions& options, int64_t capacity, int64_t keys) {
  const int64_t all = (capacity + keys - 1) / keys;
  return options.window > 0 ? std::min(all, (options.window + keys - 1) / keys + 1) : all;
}
/// What blocks of cached_attention leave of the chunks of each query; nearly nothing where a block takes all chunks of one. Throws
/// DeviceError for more heads of sequences than kMostQueries.
inline Shape attention_scratch(const HeadShape& shape, const ScoreOptions& options, int64_t capacity) {
  const int64_t sequences = shape.sequences();
  if (sequences > kMostQueries)
    throw DeviceError("decoding on CUDA takes up to " + std::to_string(kMostQueries) + " heads of sequences at once");
  const int64_t rows = std::min({shape.length, kSplitQueries, kMostQueries / sequences});
  if (sequences * rows >= kEnoughQueries) return {1, rows, 1, 1};
  return {sequences, rows, std::min(key_splits(options, capacity, kAttentionKeys), kMostChunks + 1), kAttentionPartial};
}
/// Per query and split of cached_top1_element: greatest score and the key that has it.
inline Shape split_scratch(const HeadShape& shape, const ScoreOptions& options, int64_t capacity) {
  return {shape.sequences(), std::min(shape.length, kSplitQueries), key_splits(options, capacity, kSplitKeys), shape.width + 2};
}

void cached_attention(Stream stream, const CachedTask& task, const Tensor& scratch);
/// selected i32 [B, H, n]: the key with the greatest score, the first of equals.
void cached_top1_element(Stream stream, const CachedTask& task, const Tensor& selected, const Tensor& scratch);

}  // namespace saccade::cuda
