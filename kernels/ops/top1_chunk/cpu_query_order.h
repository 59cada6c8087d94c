#pragma once
#include <algorithm>
#include <vector>

#include "kernels/ops/attention/cpu_head_tiles.h"
#include "kernels/ops/top1_chunk/chunk_attention.h"

namespace saccade::cpu {

/// Up to kPieceQueries queries of one sequence and head that chose one chunk: the work of one task. A popular chunk has many tasks, so that
/// threads share it; the cut depends on the number of its queries alone.
struct QueryPiece {
  int64_t batch_head, chunk;
  const int32_t* positions;
  int64_t queries;
  int64_t extra;  ///< −1: the chunk's first; else its number among the further tasks of this sequence and head, below max_extras
};

/// All tasks of one top-k slot, those of a chunk one after another.
inline std::vector<QueryPiece> query_pieces(const ChunkProblem& problem, const QueryOrder& sorted, int64_t slot) {
  std::vector<QueryPiece> pieces;
  for (int64_t batch_head = 0; batch_head < problem.shape.sequences(); ++batch_head) {
    const int64_t list = batch_head * problem.options.top_k + slot;
    const int32_t* offsets = sorted.offsets.data<int32_t>() + list * (problem.chunks() + 1);
    const int32_t* order = sorted.order.data<int32_t>() + list * problem.shape.length;
    int64_t extras = 0;
    for (int64_t c = 0; c < problem.chunks(); ++c)
      for (int64_t i = offsets[c]; i < offsets[c + 1]; i += kPieceQueries)
        pieces.push_back(
            {batch_head, c, order + i, std::min(kPieceQueries, static_cast<int64_t>(offsets[c + 1]) - i), i == offsets[c] ? -1 : extras++});
  }
  return pieces;
}

/// Calls f(positions, count) for the queries of a task, at most kTileQueries at a time, in order.
template <class F>
void for_query_tiles(const QueryPiece& piece, F&& f) {
  for (int64_t i = 0; i < piece.queries; i += kTileQueries) f(piece.positions + i, std::min(kTileQueries, piece.queries - i));
}

/// Copies the rows at `positions` (elements `stride` apart) one after another.
template <class T>
void gather_rows(const T* x, int64_t stride, const int32_t* positions, int64_t rows, int64_t width, T* out) {
  for (int64_t r = 0; r < rows; ++r) std::copy_n(x + positions[r] * stride, width, out + r * width);
}

}  // namespace saccade::cpu
