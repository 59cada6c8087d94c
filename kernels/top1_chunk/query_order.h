#pragma once
#include <algorithm>

#include "kernels/attention/head_tiles.h"
#include "kernels/top1_chunk/chunk_attention.h"

namespace saccade::cpu {

/// Calls f(positions, count) for the queries of sequence-head `line` that chose `chunk` at place `place`, at most
/// kTileQueries at a time, in order.
template <class F>
void for_query_tiles(const ChunkProblem& problem, const QueryOrder& sorted, int64_t line, int64_t place, int64_t chunk, F&& f) {
  const int64_t list = line * problem.options.top_k + place;
  const int32_t* offsets = sorted.offsets.data<int32_t>() + list * (problem.chunks() + 1);
  const int32_t* order = sorted.order.data<int32_t>() + list * problem.shape.length;
  for (int64_t i = offsets[chunk]; i < offsets[chunk + 1]; i += kTileQueries)
    f(order + i, std::min(kTileQueries, static_cast<int64_t>(offsets[chunk + 1]) - i));
}

/// Copies the rows at `positions` (elements `stride` apart) one after another.
template <class T>
void gather_rows(const T* x, int64_t stride, const int32_t* positions, int64_t rows, int64_t width, T* out) {
  for (int64_t r = 0; r < rows; ++r) std::copy_n(x + positions[r] * stride, width, out + r * width);
}

}  // namespace saccade::cpu
