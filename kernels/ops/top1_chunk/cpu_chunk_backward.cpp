#include "kernels/engine/parallel.h"
#include "kernels/ops/top1_chunk/cpu_query_order.h"

namespace saccade::cpu {
namespace {

/// One chunk of one head: its keys, and where their gradients go.
template <class T>
struct Chunk {
  Chunk(const ChunkBackward& in, int64_t batch_head, int64_t c)
      : b(batch_head / in.problem.shape.heads),
        h(batch_head % in.problem.shape.heads),
        begin(c * in.problem.options.chunk),
        end(std::min(in.problem.shape.length, begin + in.problem.options.chunk)),
        head(in.problem.shape, in.problem.score, in.k, in.v, b, h),
        q(in.problem.shape.rows<T>(in.q, b, h)),
        d_o(in.problem.shape.rows<T>(in.d_o, b, h)),
        lse(in.problem.shape.of_head<T>(in.lse, b, h)),
        delta(in.problem.shape.of_head<T>(in.delta, b, h)),
        dq(in.dq ? in.problem.shape.rows<T>(in.dq.tensor, b, h) : nullptr),
        dk(in.dk ? in.problem.shape.rows<T>(in.dk.tensor, b, h) : nullptr),
        dv(in.dv ? in.problem.shape.rows<T>(in.dv.tensor, b, h) : nullptr) {}

  T* at(T* x, int64_t position) const { return x ? x + position * head.stride : nullptr; }

  int64_t b, h, begin, end;
  HeadKeys<T> head;
  const T *q, *d_o, *lse, *delta;
  T *dq, *dk, *dv;
};

/// The chunk's own queries: the first contribution to all gradients of its rows.
template <class T>
void local_chunk(const ChunkBackward& in, int64_t batch_head, int64_t c) {
  const Chunk<T> chunk(in, batch_head, c);
  const int64_t stride = chunk.head.stride;
  for (int64_t key = chunk.begin; key < chunk.end; key += kTileKeys)
    for (int64_t first = key; first < chunk.end; first += kTileQueries) {
      const QueryRows<T> rows{chunk.q + first * stride,  stride, std::min(kTileQueries, chunk.end - first), first, nullptr,
                              chunk.d_o + first * stride};
      const GradientTile<T> tile =
          gradient_tile(chunk.head, rows, key, std::min(kTileKeys, chunk.end - key), chunk.lse + first, chunk.delta + first);
      key_gradients(chunk.head, rows, tile, chunk.at(chunk.dk, key), in.dk.add || first > key, chunk.at(chunk.dv, key),
                    in.dv.add || first > key, stride);
      if (chunk.dq) query_gradients(chunk.head, tile, key, chunk.at(chunk.dq, first), stride, in.dq.add || key > chunk.begin);
    }
}

/// Where a further piece keeps its share of dk (side 0) or dv (side 1), [chunk, d].
template <class T>
T* extra_sum(const ChunkBackward& in, const QueryPiece& piece, int64_t side) {
  return in.extra.data<T>() + ((piece.batch_head * max_extras(in.problem.shape.length) + piece.extra) * 2 + side) *
                                  in.problem.options.chunk * in.problem.shape.width;
}

/// Queries elsewhere that chose a chunk; each query is in one piece, so no two tasks write the same dq. The chunk's first piece
/// adds to dk and dv, the others keep their shares apart.
template <class T>
void remote_piece(const ChunkBackward& in, const QueryPiece& piece) {
  const Chunk<T> chunk(in, piece.batch_head, piece.chunk);
  const int64_t stride = chunk.head.stride, width = chunk.head.width, row = piece.extra < 0 ? stride : width;
  T* dk = piece.extra < 0 || !chunk.dk ? chunk.at(chunk.dk, chunk.begin) : extra_sum<T>(in, piece, 0);
  T* dv = piece.extra < 0 || !chunk.dv ? chunk.at(chunk.dv, chunk.begin) : extra_sum<T>(in, piece, 1);
  T *q = scratch<T, 8>(kTileQueries * width), *d_o = scratch<T, 9>(kTileQueries * width), *dq = scratch<T, 10>(kTileQueries * width);
  for_query_tiles(piece, [&](const int32_t* positions, int64_t n) {
    gather_rows(chunk.q, stride, positions, n, width, q);
    gather_rows(chunk.d_o, stride, positions, n, width, d_o);
    const QueryRows<T> rows{q, width, n, 0, positions, d_o};
    const bool add = piece.extra < 0 || positions != piece.positions;
    for (int64_t key = chunk.begin; key < chunk.end; key += kTileKeys) {
      const GradientTile<T> tile = gradient_tile(chunk.head, rows, key, std::min(kTileKeys, chunk.end - key), chunk.lse, chunk.delta);
      const int64_t offset = (key - chunk.begin) * row;
      key_gradients(chunk.head, rows, tile, dk ? dk + offset : nullptr, add, dv ? dv + offset : nullptr, add, row);
      if (chunk.dq) query_gradients(chunk.head, tile, key, dq, width, key > chunk.begin);
    }
    if (!chunk.dq) return;
    for (int64_t r = 0; r < n; ++r)
      for (int64_t i = 0; i < width; ++i) chunk.dq[positions[r] * stride + i] += dq[r * width + i];
  });
}

/// Adds the share of a further piece to its chunk.
template <class T>
void add_extra(const ChunkBackward& in, const QueryPiece& piece) {
  const Chunk<T> chunk(in, piece.batch_head, piece.chunk);
  for (int64_t side = 0; side < 2; ++side) {
    T* sum = chunk.at(side == 0 ? chunk.dk : chunk.dv, chunk.begin);
    if (!sum) continue;
    const T* share = extra_sum<T>(in, piece, side);
    for (int64_t key = 0; key < chunk.end - chunk.begin; ++key)
      for (int64_t i = 0; i < chunk.head.width; ++i) sum[key * chunk.head.stride + i] += share[key * chunk.head.width + i];
  }
}

template <class T>
void remote_chunks(const ChunkBackward& in, int64_t slot) {
  const std::vector<QueryPiece> pieces = query_pieces(in.problem, in.sorted, slot);
  const auto count = static_cast<int64_t>(pieces.size());
  const auto piece = [&](int64_t i) -> const QueryPiece& { return pieces[static_cast<size_t>(i)]; };
  parallel_for(count, [&](int64_t i) { remote_piece<T>(in, piece(i)); });
  parallel_for(count, [&](int64_t first) {
    if (piece(first).extra >= 0) return;
    for (int64_t i = first + 1; i < count && piece(i).extra >= 0; ++i) add_extra<T>(in, piece(i));
  });
}

}  // namespace

template <class T>
void chunk_backward(const ChunkBackward& in) {
  const int64_t chunks = in.problem.chunks(), tasks = in.problem.shape.sequences() * chunks;
  parallel_for(tasks, [&](int64_t task) { local_chunk<T>(in, task / chunks, task % chunks); });
  for (int64_t slot = 0; slot < in.problem.options.top_k; ++slot) remote_chunks<T>(in, slot);
}

template void chunk_backward<float>(const ChunkBackward&);
template void chunk_backward<double>(const ChunkBackward&);

}  // namespace saccade::cpu
