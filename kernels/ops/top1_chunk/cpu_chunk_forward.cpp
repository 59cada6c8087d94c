#include <limits>

#include "kernels/engine/parallel.h"
#include "kernels/ops/top1_chunk/cpu_query_order.h"

namespace saccade::cpu {
namespace {

template <class T>
SoftmaxState<T> state_at(const ChunkForward& in, int64_t b, int64_t h, int64_t first) {
  const HeadShape& shape = in.problem.shape;
  T* weighted = shape.of_head<T>(in.entropy, b, h);
  return {shape.of_head<T>(in.lse, b, h) + first, shape.of_head<T>(in.sum, b, h) + first, weighted ? weighted + first : nullptr};
}

/// Queries that chose a chunk attend to all its keys. No other piece of this slot has the same queries.
template <class T>
void remote_piece(const ChunkForward& in, const QueryPiece& piece) {
  const HeadShape& shape = in.problem.shape;
  const int64_t b = piece.batch_head / shape.heads, h = piece.batch_head % shape.heads, chunk = in.problem.options.chunk;
  const HeadKeys<T> head(shape, in.problem.score, in.k, in.v, b, h);
  T* q = scratch<T, 8>(kTileQueries * shape.width);
  for_query_tiles(piece, [&](const int32_t* positions, int64_t rows) {
    gather_rows(shape.rows<T>(in.q, b, h), shape.stride(), positions, rows, shape.width, q);
    absorb_keys<T>(head, {q, shape.width, rows, 0, positions}, piece.chunk * chunk, (piece.chunk + 1) * chunk, state_at<T>(in, b, h, 0),
                   shape.rows<T>(in.o, b, h));
  });
}

/// Queries of chunk c attend to their own chunk and are finished.
template <class T>
void local_chunk(const ChunkForward& in, int64_t b, int64_t h, int64_t c) {
  const HeadShape& shape = in.problem.shape;
  const HeadKeys<T> head(shape, in.problem.score, in.k, in.v, b, h);
  const int64_t begin = c * in.problem.options.chunk, end = std::min(shape.length, begin + in.problem.options.chunk);
  for (int64_t first = begin; first < end; first += kTileQueries) {
    const int64_t rows = std::min(kTileQueries, end - first), stride = shape.stride();
    const SoftmaxState<T> state = state_at<T>(in, b, h, first);
    T* o = shape.rows<T>(in.o, b, h) + first * stride;
    absorb_keys<T>(head, {shape.rows<T>(in.q, b, h) + first * stride, stride, rows, first}, begin, first + rows, state, o);
    finish_rows(state, rows, shape.width, o, stride, state.max, state.weighted);
  }
}

}  // namespace

void sort_queries(const ChunkProblem& problem, const Tensor& selected, const QueryOrder& sorted) {
  const int64_t length = problem.shape.length, top_k = problem.options.top_k, chunks = problem.chunks();
  parallel_for(problem.shape.sequences() * top_k, [&](int64_t list) {
    const int32_t* chosen = selected.data<int32_t>() + list / top_k * length * top_k + list % top_k;
    int32_t* offsets = sorted.offsets.data<int32_t>() + list * (chunks + 1);
    int32_t* order = sorted.order.data<int32_t>() + list * length;
    std::fill_n(offsets, chunks + 1, 0);
    for (int64_t t = 0; t < length; ++t)
      if (chosen[t * top_k] >= 0) ++offsets[chosen[t * top_k] + 1];
    for (int64_t c = 0; c < chunks; ++c) offsets[c + 1] += offsets[c];
    for (int64_t t = 0; t < length; ++t)
      if (chosen[t * top_k] >= 0) order[offsets[chosen[t * top_k]]++] = static_cast<int32_t>(t);
    for (int64_t c = chunks; c > 0; --c) offsets[c] = offsets[c - 1];
    offsets[0] = 0;
  });
}

template <class T>
void chunk_forward(const ChunkForward& in) {
  const int64_t heads = in.problem.shape.heads, sequences = in.problem.shape.sequences(), chunks = in.problem.chunks();
  std::fill_n(in.lse.data<T>(), in.lse.size(), -std::numeric_limits<T>::infinity());
  for (int64_t slot = 0; slot < in.problem.options.top_k; ++slot) {
    const std::vector<QueryPiece> pieces = query_pieces(in.problem, in.sorted, slot);
    parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t i) { remote_piece<T>(in, pieces[static_cast<size_t>(i)]); });
  }
  parallel_for(sequences * chunks, [&](int64_t task) {
    const int64_t batch_head = task / chunks;
    local_chunk<T>(in, batch_head / heads, batch_head % heads, task % chunks);
  });
}

template void chunk_forward<float>(const ChunkForward&);
template void chunk_forward<double>(const ChunkForward&);

}  // namespace saccade::cpu
