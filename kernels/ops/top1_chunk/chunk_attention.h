#pragma once
#include "kernels/ops/top1_chunk/cpu_selection.h"

namespace saccade::cpu {

/// Per sequence, head and top-k slot: the queries sorted by the chunk they chose (offset F and index I of arXiv:2505.18522, appendix D).
/// offsets i32 [B, H, top_k, chunks + 1]: queries of chunk c stand at offsets[c] … offsets[c + 1] − 1 of order.
/// order   i32 [B, H, top_k, T]: positions, increasing inside a chunk; queries without a remote chunk are left out.
struct QueryOrder {
  Tensor offsets, order;
};
void sort_queries(const ChunkProblem& problem, const Tensor& selected, const QueryOrder& sorted);

/// Attention to the remote chunks and to the query's own chunk, one softmax over the union (arXiv:2505.18522,
/// algorithm 1).
struct ChunkForward {
  ChunkProblem problem;
  Tensor q, k, v;
  QueryOrder sorted;
  Tensor sum;  ///< [B, H, T], workspace of the call
  Tensor o, lse, entropy;
};
template <class T>
void chunk_forward(const ChunkForward& in);

/// Queries of a chunk in one task.
constexpr int64_t kPieceQueries = 512;
/// Most tasks per sequence and head beyond the first of every chunk.
inline int64_t max_extras(int64_t length) { return length / kPieceQueries; }
/// Shape of the workspace of the backward pass: what the further tasks of a chunk add to its dk and dv.
inline Shape extra_scratch(const ChunkProblem& p) {
  return {p.shape.sequences(), max_extras(p.shape.length), 2, p.options.chunk, p.shape.width};
}

/// Gradients through the attention used (arXiv:2505.18522, algorithm 2). delta [B, H, T] holds the algorithm's D = rowsum(dO ∘ o).
struct ChunkBackward {
  ChunkProblem problem;
  Tensor q, k, v;
  QueryOrder sorted;
  Tensor d_o, lse, delta;
  GradTarget dq, dk, dv;
  Tensor extra = {};  ///< workspace (extra_scratch) where dk or dv are wanted
};
template <class T>
void chunk_backward(const ChunkBackward& in);

}  // namespace saccade::cpu
