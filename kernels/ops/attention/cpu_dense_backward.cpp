#include <algorithm>

#include "kernels/engine/parallel.h"
#include "kernels/ops/attention/cpu_dense.h"
#include "kernels/ops/attention/cpu_head_tiles.h"

namespace saccade::cpu {
namespace {

/// One head: its rows, and tiles of its gradients.
template <class T>
struct Head {
  Head(const DenseBackward& in, int64_t b, int64_t h)
      : keys(in.shape, in.options, in.k, in.v, b, h),
        length(in.shape.length),
        q(in.shape.rows<T>(in.q, b, h)),
        d_o(in.shape.rows<T>(in.d_o, b, h)),
        lse(in.shape.of_head<T>(in.lse, b, h)),
        delta(in.shape.of_head<T>(in.delta, b, h)) {}

  QueryRows<T> queries(int64_t first, int64_t last) const {
    return {q + first * keys.stride, keys.stride, std::min(kTileQueries, last - first), first, nullptr, d_o + first * keys.stride};
  }
  GradientTile<T> tile(const QueryRows<T>& rows, int64_t key) const {
    return gradient_tile(keys, rows, key, std::min(kTileKeys, length - key), lse + rows.first, delta + rows.first);
  }

  HeadKeys<T> keys;
  int64_t length;
  const T *q, *d_o, *lse, *delta;
};

/// dk and dv of one key tile, over its queries in order; its share of dq is added too when `dq` is given.
template <class T>
void key_tile(const DenseBackward& in, int64_t b, int64_t h, int64_t key, T* dq) {
  const Head<T> head(in, b, h);
  const int64_t stride = head.keys.stride, end = std::min(head.length, key + kTileKeys);
  const int64_t last = head.keys.window > 0 ? std::min(head.length, end - 1 + head.keys.window) : head.length;
  T* dk = in.dk ? in.shape.rows<T>(in.dk.tensor, b, h) + key * stride : nullptr;
  T* dv = in.dv ? in.shape.rows<T>(in.dv.tensor, b, h) + key * stride : nullptr;
  for (int64_t first = key; first < last; first += kTileQueries) {
    const QueryRows<T> rows = head.queries(first, last);
    const GradientTile<T> tile = head.tile(rows, key);
    key_gradients(head.keys, rows, tile, dk, in.dk.add || first > key, dv, in.dv.add || first > key, stride);
    if (dq) query_gradients(head.keys, tile, key, dq + first * stride, stride, true);
  }
}

/// Rows [first, last) of one head's dq start from zero unless they are added to.
template <class T>
void start_queries(const DenseBackward& in, int64_t b, int64_t h, int64_t first, int64_t last) {
  if (in.dq.add) return;
  T* dq = in.shape.rows<T>(in.dq.tensor, b, h);
  for (int64_t t = first; t < last; ++t) std::fill_n(dq + t * in.shape.stride(), in.shape.width, T(0));
}

/// dq of a block of queries alone, over its key tiles in order.
template <class T>
void query_block(const DenseBackward& in, int64_t b, int64_t h, int64_t first, int64_t last) {
  const Head<T> head(in, b, h);
  const QueryRows<T> rows = head.queries(first, last);
  T* dq = in.shape.rows<T>(in.dq.tensor, b, h) + first * head.keys.stride;
  start_queries<T>(in, b, h, first, last);
  const int64_t oldest = head.keys.window > 0 ? std::max<int64_t>(0, first - head.keys.window + 1) : 0;
  for (int64_t key = oldest / kTileKeys * kTileKeys; key < last; key += kTileKeys)
    query_gradients(head.keys, head.tile(rows, key), key, dq, head.keys.stride, true);
}

}  // namespace

template <class T>
void dense_backward(const DenseBackward& in) {
  const HeadShape& shape = in.shape;
  const int64_t tiles = (shape.length + kTileKeys - 1) / kTileKeys;
  if (shape.sequences() >= 2 * thread_count() || thread_count() == 1) {
    parallel_for(shape.sequences(), [&](int64_t sequence) {
      const int64_t b = sequence / shape.heads, h = sequence % shape.heads;
      T* dq = in.dq ? shape.rows<T>(in.dq.tensor, b, h) : nullptr;
      if (dq) start_queries<T>(in, b, h, 0, shape.length);
      for (int64_t tile = 0; tile < tiles; ++tile) key_tile(in, b, h, tile * kTileKeys, dq);
    });
    return;
  }
  // Few heads: key tiles and query blocks apart, each recomputing its tiles. Sums keep their order, so the bits are the same.
  parallel_for(shape.sequences() * tiles, [&](int64_t task) {
    const int64_t sequence = task / tiles;
    key_tile<T>(in, sequence / shape.heads, sequence % shape.heads, task % tiles * kTileKeys, nullptr);
  });
  if (!in.dq) return;
  parallel_for(shape.sequences() * tiles, [&](int64_t task) {
    const int64_t sequence = task / tiles, first = (tiles - 1 - task % tiles) * kTileKeys;
    query_block<T>(in, sequence / shape.heads, sequence % shape.heads, first, std::min(shape.length, first + kTileKeys));
  });
}

template <class T>
void output_dots(const HeadShape& shape, const Tensor& d_o, const Tensor& o, const Tensor& delta) {
  constexpr int64_t kRows = 256;
  const int64_t blocks = (shape.length + kRows - 1) / kRows;
  parallel_for(shape.sequences() * blocks, [&](int64_t task) {
    const int64_t sequence = task / blocks, b = sequence / shape.heads, h = sequence % shape.heads, first = task % blocks * kRows;
    const int64_t offset = first * shape.stride();
    dot_rows(shape.rows<T>(d_o, b, h) + offset, shape.rows<T>(o, b, h) + offset, std::min(kRows, shape.length - first), shape.width,
             shape.stride(), shape.of_head<T>(delta, b, h) + first);
  });
}

template <class T>
void sum_over_batch(const Tensor& x, const GradTarget& sum) {
  const int64_t size = sum.tensor.size();
  T* total = sum.tensor.data<T>();
  parallel_ranges(size, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t b = 0; b < x.dim(0); ++b) {
      const T* term = x.data<T>() + b * size;
      if (b == 0 && !sum.add) {
        std::copy(term + begin, term + end, total + begin);
      } else {
        for (int64_t i = begin; i < end; ++i) total[i] += term[i];
      }
    }
  });
}

template void dense_backward<float>(const DenseBackward&);
template void dense_backward<double>(const DenseBackward&);
template void output_dots<float>(const HeadShape&, const Tensor&, const Tensor&, const Tensor&);
template void output_dots<double>(const HeadShape&, const Tensor&, const Tensor&, const Tensor&);
template void sum_over_batch<float>(const Tensor&, const GradTarget&);
template void sum_over_batch<double>(const Tensor&, const GradTarget&);

}  // namespace saccade::cpu
