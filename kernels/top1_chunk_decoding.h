#pragma once
#include "kernels/token_position.h"
#include "kernels/top1_chunk.h"

namespace saccade {

/// Top-1 Chunk Selection of the n newest tokens of sequences in progress (specification 3.5), with the cache of
/// kernels/decoding.h. Mean selection keeps the mean key of every complete chunk and reads only those, the chosen chunks and the
/// query's own: its cost hardly grows with the length. Exact selection reads all keys once. Nothing is kept for backward.

/// Whether selection goes by mean keys.
inline bool keeps_mean_keys(const ChunkOptions& options) { return options.selection == ChunkSelection::approx; }
/// Writes the mean keys of chunks that the n tokens from `position` on complete. k [B, capacity, H, d] with those tokens,
/// means [B, capacity / chunk, H, d].
void extend_mean_keys(Tape& tape, const Tensor& k, const Tensor& means, const ChunkOptions& options, const TokenPosition& position,
                      int64_t n);

struct CachedChunk {
  Tensor o;         ///< [B, n, H, d]
  Tensor selected;  ///< i32 [B, H, n, top_k] as in Top1Chunk
};
/// `means` is empty unless keeps_mean_keys.
CachedChunk cached_top1_chunk(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& means, const ScoreOptions& score,
                              const ChunkOptions& options, const TokenPosition& position);

}  // namespace saccade
