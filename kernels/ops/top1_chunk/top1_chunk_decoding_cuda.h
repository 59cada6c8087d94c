#pragma once
#include "kernels/ops/decoding/decoding_cuda.h"
#include "kernels/ops/top1_chunk/cpu_selection.h"

namespace saccade::cuda {

/// means[b, c, h] = mean key of every chunk c that the n tokens from `position` on complete.
void extend_mean_keys(Stream stream, const Tensor& k, const Tensor& means, int64_t chunk, const TokenPosition& position, int64_t n);

/// Keys per block, of those that a query attends to.
constexpr int64_t kChunkSplitKeys = 64;

/// Workspace between the kernels of one decoding step, for min(n, kSplitQueries) queries.
struct ChunkScratch {
  Tensor scores;   ///< f32 [B · H, queries, capacity / chunk]; empty where selection needs none
  Tensor partial;  ///< f32 [B · H, queries, splits, d + 2]
};
inline Shape chunk_scores(const HeadShape& shape, int64_t chunk, int64_t capacity) {
  return {shape.sequences(), std::min(shape.length, kSplitQueries), std::max<int64_t>(1, capacity / chunk)};
}
inline Shape chunk_partial(const HeadShape& shape, const ChunkOptions& options) {
  const int64_t splits = (options.chunk + kChunkSplitKeys - 1) / kChunkSplitKeys * (options.top_k + 1);
  return {shape.sequences(), std::min(shape.length, kSplitQueries), splits, shape.width + 2};
}

/// selected i32 [B, H, n, top_k] and the attention to the chosen chunks and the own one. `means` is empty for log masses.
void cached_top1_chunk(Stream stream, const CachedTask& task, const ChunkOptions& options, const Tensor& means, const Tensor& selected,
                       const ChunkScratch& scratch);

}  // namespace saccade::cuda
