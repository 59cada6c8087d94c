#pragma once
#include <string>

#include "kernels/attention.h"

namespace saccade {

enum class ChunkSelection { exact, approx, oracle_recent, random };
ChunkSelection parse_chunk_selection(const std::string& name);  ///< "exact", "approx", "oracle-recent", "random"

struct ChunkOptions {
  int64_t chunk = 128;
  int64_t top_k = 1;             ///< remote chunks per query; 1 is the paper
  bool share_selection = false;  ///< all heads take the chunk with the greatest sum of scores over heads
  ChunkSelection selection = ChunkSelection::exact;
  uint64_t seed = 0;  ///< of `random`
};

/// What inspection asks for (specification 3.7); empty unless asked for.
struct ChunkReport {
  Tensor score;          ///< [B, H, T, chunks]: log mass (exact) or scale · q · mean k (approx); −inf: not a candidate
  Tensor captured_mass;  ///< [B, H, T]: mass of the chosen chunks in the full distribution
  Tensor margin;         ///< [B, H, T]: least chosen score minus the best of the others; +inf without others, NaN without candidates
};

struct Top1Chunk {
  Tensor o;         ///< [B, T, H, d]
  Tensor selected;  ///< i32 [B, H, T, top_k] remote chunks, −1: none (top_k fewest candidates first filled)
  Tensor lse;       ///< [B, H, T] of the union of local and remote chunks
  Tensor entropy;   ///< [B, H, T] of the distribution used; empty unless asked for
  ChunkReport report;
};

/// Top-1 Chunk Selection (BC 5 and appendix D, specification 3): each query attends to its own chunk causally and to the
/// chosen complete earlier chunk(s), one softmax over the union. Selection carries no gradient.
/// q, k, v [B, T, H, d]. `means`: the mean keys of the complete chunks [B, T / chunk, H, d] where they are known (approx).
Top1Chunk top1_chunk(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& score, const ChunkOptions& options,
                     bool want_report = false, const Tensor& means = {});

/// The weights that top1_chunk used for one sequence: [H, T, T].
Tensor top1_chunk_weights(Tape& tape, const Tensor& q, const Tensor& k, const Top1Chunk& result, const ScoreOptions& score,
                          const ChunkOptions& options, int64_t sequence);

}  // namespace saccade
