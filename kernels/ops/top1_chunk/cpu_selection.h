#pragma once
#include "kernels/ops/attention/head_shape.h"
#include "kernels/ops/top1_chunk/top1_chunk.h"

namespace saccade {

/// Sizes and options of top1_chunk. q and k may have batch 1.
struct ChunkProblem {
  HeadShape shape;
  ScoreOptions score;
  ChunkOptions options;

  int64_t chunks() const { return (shape.length + options.chunk - 1) / options.chunk; }
  /// Complete chunks before the one of position t: the candidates.
  int64_t candidates(int64_t t) const { return t / options.chunk; }
  bool needs_scores() const { return options.selection == ChunkSelection::exact || options.selection == ChunkSelection::approx; }
};

namespace cpu {

/// means[b, c, h] = mean of the keys of complete chunk c; k [B, T, H, d], means [B, T / chunk, H, d].
template <class T>
void chunk_means(const ChunkProblem& problem, const Tensor& k, const Tensor& means);

/// selected [B, H, T, top_k] (arXiv:2505.18522, section 5.1.2), best first, −1 where there are fewer candidates; ties to the smaller chunk.
/// Only approx uses means. Scores exist in tiles; shared selections sum them over heads. The queries may be the newest ones of longer
/// sequences: then problem.shape is that of k, `first` the position of query 0, and T the number of queries in q and selected.
template <class T>
void select_chunks(const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& means, const Tensor& selected,
                   int64_t first = 0);

/// score [B, H, R, chunks] of every candidate of the R queries from `first` on, −inf elsewhere: scale · q · mean k where means are given,
/// else the log mass.
template <class T>
void score_chunks(const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& means, int64_t first, const Tensor& score);

}  // namespace cpu
}  // namespace saccade
