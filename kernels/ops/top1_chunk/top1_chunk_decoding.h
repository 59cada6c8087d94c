#pragma once
#include "kernels/engine/token_position.h"
#include "kernels/ops/top1_chunk/top1_chunk.h"

namespace saccade {

/// Incremental decoding of Top-1 Chunk Selection (arXiv:2505.18522, section 5.1 and appendix D), with the KV cache of
/// kernels/ops/decoding/decoding.h: the n newest tokens get what top1_chunk gives for these queries. Approximate selection saves the mean
/// key of every complete chunk and reads only those, the chosen chunks and the query's own: its cost hardly grows with the length. Exact
/// selection reads all keys once. Nothing is saved for backward.

/// Whether selection goes by mean keys.
inline bool keeps_mean_keys(const ChunkOptions& options) { return options.selection == ChunkSelection::approx; }
/// means_c = mean_{j ∈ c} k_j for the chunks c that the n tokens from `position` on complete. k [B, capacity, H, d] with those tokens,
/// means [B, capacity / chunk, H, d] of k's dtype. Checks nothing.
void extend_mean_keys(Tape& tape, const Tensor& k, const Tensor& means, const ChunkOptions& options, const TokenPosition& position,
                      int64_t n);

struct CachedChunk {
  Tensor o;         ///< [B, n, H, d] of v's dtype
  Tensor selected;  ///< i32 [B, H, n, top_k] as in Top1Chunk
};
/// q [B, n, H, d]   k, v [B, capacity, H, d]   means as above, empty unless keeps_mean_keys; all of one dtype.
/// Throws std::invalid_argument where a shape of q, k or v differs from these, first + n > capacity, or means are missing or superfluous;
/// DeviceError on CUDA for d above 256.
CachedChunk cached_top1_chunk(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& means, const ScoreOptions& score,
                              const ChunkOptions& options, const TokenPosition& position);

}  // namespace saccade
