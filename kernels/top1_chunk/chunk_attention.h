#pragma once
#include "kernels/top1_chunk/selection.h"

namespace saccade::cpu {

/// Per sequence, head and place among the top_k: the queries sorted by the chunk they chose (specification 3.2).
/// offsets i32 [B, H, top_k, chunks + 1]: queries of chunk c stand at offsets[c] … offsets[c + 1] − 1 of order.
/// order   i32 [B, H, top_k, T]: positions, increasing inside a chunk; queries without a remote chunk are left out.
struct QueryOrder {
  Tensor offsets, order;
};
void sort_queries(const ChunkProblem& problem, const Tensor& selected, const QueryOrder& sorted);

/// Attention to the remote chunks and to the query's own chunk, one softmax over the union (specification 3.2, 3.3).
struct ChunkForward {
  ChunkProblem problem;
  Tensor q, k, v;
  QueryOrder sorted;
  Tensor sum;  ///< [B, H, T] for the time of the call
  Tensor o, lse, entropy;
};
template <class T>
void chunk_forward(const ChunkForward& in);

/// Queries of a chunk that one task takes.
constexpr int64_t kPieceQueries = 512;
/// Most pieces of a sequence-head beyond the first of every chunk.
inline int64_t max_extras(int64_t length) { return length / kPieceQueries; }
/// Shape of the scratch of a backward: what the further pieces add to a chunk's dk and dv.
inline Shape extra_scratch(const ChunkProblem& p) {
  return {p.shape.sequences(), max_extras(p.shape.length), 2, p.options.chunk, p.shape.width};
}

/// Gradients through the attention used (specification 3.4). mean [B, H, T] holds dO · o.
struct ChunkBackward {
  ChunkProblem problem;
  Tensor q, k, v;
  QueryOrder sorted;
  Tensor d_o, lse, mean;
  GradTarget dq, dk, dv;
  Tensor extra = {};  ///< scratch (extra_scratch) where dk or dv are wanted
};
template <class T>
void chunk_backward(const ChunkBackward& in);

}  // namespace saccade::cpu
