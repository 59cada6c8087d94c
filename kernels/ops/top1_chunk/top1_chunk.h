#pragma once
#include <string>

#include "kernels/ops/attention/attention.h"
#include "kernels/ops/shared/forced_choice.h"

namespace saccade {

/// exact and approx: arXiv:2505.18522, section 5.1.2. oracle_recent (the chunk before the query's own) and random are controls.
enum class ChunkSelection { exact, approx, oracle_recent, random };
/// "exact", "approx", "oracle-recent", "random". Throws UsageError on another name.
ChunkSelection parse_chunk_selection(const std::string& name);

struct ChunkOptions {
  int64_t chunk = 128;           ///< B_c; a longer one than T counts as T
  int64_t top_k = 1;             ///< remote chunks per query; 1 is the paper, more as in MoBA (arXiv:2502.13189, section 2.2)
  bool share_selection = false;  ///< all heads take the chunk with the greatest sum of scores over heads
  ChunkSelection selection = ChunkSelection::exact;
  uint64_t seed = 0;  ///< of `random`
  /// A complete chunk before the query's own takes the place of the last chosen one, unless it is chosen already; −1: no remote chunk.
  ForcedChoice forced = {};
};

/// What is told for inspection: nothing; entropy, captured mass and margin, for which at most 64 MiB of scores exist at a time (or those of
/// 128 queries); or the scores of all queries, too.
enum class ChunkReported { nothing, numbers, scores };

/// Empty unless asked for. Of accumulation_dtype(q).
struct ChunkReport {
  Tensor score;          ///< [B, H, T, chunks]: log mass (exact) or scale · q · mean k − slope (t − mean j) (approx); −inf: none
  Tensor captured_mass;  ///< [B, H, T]: mass of the chosen chunks in the softmax over all visible keys
  Tensor margin;         ///< [B, H, T]: least chosen score minus the best of the others; +inf without others, NaN without candidates
};

struct Top1Chunk {
  Tensor o;         ///< [B, T, H, d] of v's dtype
  Tensor selected;  ///< i32 [B, H, T, top_k] remote chunks, best first; −1 in the slots beyond the candidates
  Tensor lse;       ///< [B, H, T] over local and remote chunks, of accumulation_dtype(v)
  Tensor entropy;   ///< [B, H, T] of the distribution used, dtype as lse; empty unless asked for
  ChunkReport report;
};

/// Top-1 Chunk Selection (arXiv:2505.18522, section 5.1 and appendix D, algorithms 1 and 2). Query t attends causally to its own chunk
/// c(t) = ⌊t / B_c⌋ and to all keys of the chosen complete chunk(s) r(t) < c(t), with one softmax over the union U(t):
///   exact: r(t) = argmax_{c < c(t)} ln Σ_{j ∈ c} exp(s_tj),   approx: r(t) = argmax_{c < c(t)} q_t · mean_{j ∈ c} k_j
///   o_t = Σ_{j ∈ U(t)} exp(s_tj − lse_t) v_j;   ties to the smaller chunk; the selection carries no gradient
/// q, k, v [B, T, H, d] of one dtype; q or k may be [1, T, H, d]. `means`: the mean keys of the complete chunks [B, T / B_c, H, d] where
/// they are known (approx), B that of k. Throws UsageError where a shape or dtype of q, k, v differs from these, window < 0, chunk < 1 or
/// top_k is outside 1 … 255, or the forced query or chunk is not there; std::invalid_argument where means have another shape; DeviceError
/// on CUDA for d above 256 or a forced choice.
Top1Chunk top1_chunk(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& score, const ChunkOptions& options,
                     ChunkReported wanted = ChunkReported::nothing, const Tensor& means = {});

/// Attention weights that top1_chunk used for some sequences: [sequences · H, T, T] of accumulation_dtype(q). Throws the UsageErrors of
/// top1_chunk, and UsageError for sequences that are not there.
Tensor top1_chunk_weights(Tape& tape, const Tensor& q, const Tensor& k, const Top1Chunk& result, const ScoreOptions& score,
                          const ChunkOptions& options, const Sequences& sequences);

}  // namespace saccade
