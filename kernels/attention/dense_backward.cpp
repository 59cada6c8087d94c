#include <algorithm>

#include "kernels/attention/dense.h"
#include "kernels/attention/score_tile.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"

namespace saccade::cpu {
namespace {

constexpr int64_t kQueries = 64, kKeys = 64;

/// One head's rows, and the tile of P and dS that all gradients are made of.
template <class T>
struct Head {
  Head(const DenseBackward& in, int64_t b, int64_t h)
      : shape(in.shape),
        options(in.options),
        q(shape.rows<T>(in.q, b, h)),
        k(shape.rows<T>(in.k, b, h)),
        v(shape.rows<T>(in.v, b, h)),
        d_o(shape.rows<T>(in.d_o, b, h)),
        lse(shape.line<T>(in.lse, b, h)),
        mean(shape.line<T>(in.mean, b, h)),
        slope(static_cast<T>(alibi_slope(options, h, shape.heads))) {}

  void make_tile(int64_t query, int64_t queries, int64_t key, int64_t keys) const {
    const int64_t stride = shape.stride(), width = shape.width;
    gemm_serial<T>(false, true, queries, keys, width, static_cast<T>(options.scale), q + query * stride, stride, k + key * stride, stride,
                   false, p, kKeys);
    gemm_serial<T>(false, true, queries, keys, width, T(1), d_o + query * stride, stride, v + key * stride, stride, false, ds, kKeys);
    ScoreTile<T> tile{p, queries, keys, kKeys, query, key};
    tile.window = options.window;
    tile.slope = slope;
    gradient_step(tile, lse + query, mean + query, static_cast<T>(options.scale), ds);
  }

  const HeadShape& shape;
  const ScoreOptions& options;
  const T *q, *k, *v, *d_o, *lse, *mean;
  T slope;
  T* p = scratch<T, 2>(kQueries * kKeys);
  T* ds = scratch<T, 3>(kQueries * kKeys);
};

/// Whether keys [key, …) are the first that queries [query, …) see: their dq is then written, else added to.
bool first_keys(int64_t query, int64_t key, int64_t window) {
  return key == (window > 0 ? std::max<int64_t>(0, query - window + 1) / kKeys * kKeys : 0);
}

/// Adds one tile's share to dq (null: not wanted).
template <class T>
void add_queries(const Head<T>& head, int64_t query, int64_t queries, int64_t key, int64_t keys, T* dq, bool add) {
  const int64_t stride = head.shape.stride();
  gemm_serial<T>(false, false, queries, head.shape.width, keys, T(1), head.ds, kKeys, head.k + key * stride, stride,
                 add || !first_keys(query, key, head.options.window), dq + query * stride, stride);
}

/// dk and dv of one key block, over its query blocks in order; dq along the way when `dq` is given.
template <class T>
void key_block(const DenseBackward& in, const Head<T>& head, int64_t b, int64_t h, int64_t key, T* dq) {
  const int64_t length = in.shape.length, stride = in.shape.stride(), width = in.shape.width, window = in.options.window;
  const int64_t keys = std::min(kKeys, length - key);
  const int64_t last = window > 0 ? std::min(length, key + keys - 1 + window) : length;
  T* dk = in.dk ? in.shape.rows<T>(in.dk.tensor, b, h) + key * stride : nullptr;
  T* dv = in.dv ? in.shape.rows<T>(in.dv.tensor, b, h) + key * stride : nullptr;
  for (int64_t query = key / kQueries * kQueries; query < last; query += kQueries) {
    const int64_t queries = std::min(kQueries, length - query);
    const bool first = query == key / kQueries * kQueries;
    head.make_tile(query, queries, key, keys);
    if (dv)
      gemm_serial<T>(true, false, keys, width, queries, T(1), head.p, kKeys, head.d_o + query * stride, stride, in.dv.add || !first, dv,
                     stride);
    if (dk)
      gemm_serial<T>(true, false, keys, width, queries, T(1), head.ds, kKeys, head.q + query * stride, stride, in.dk.add || !first, dk,
                     stride);
    if (dq) add_queries(head, query, queries, key, keys, dq, in.dq.add);
  }
}

/// dq of one query block alone, over its key blocks in order.
template <class T>
void query_block(const DenseBackward& in, const Head<T>& head, int64_t b, int64_t h, int64_t query) {
  const int64_t queries = std::min(kQueries, in.shape.length - query), window = in.options.window;
  T* dq = in.shape.rows<T>(in.dq.tensor, b, h);
  const int64_t oldest = window > 0 ? std::max<int64_t>(0, query - window + 1) : 0;
  for (int64_t key = oldest / kKeys * kKeys; key < query + queries; key += kKeys) {
    const int64_t keys = std::min(kKeys, in.shape.length - key);
    head.make_tile(query, queries, key, keys);
    add_queries(head, query, queries, key, keys, dq, in.dq.add);
  }
}

}  // namespace

template <class T>
void dense_backward(const DenseBackward& in) {
  const HeadShape& shape = in.shape;
  const int64_t key_blocks = (shape.length + kKeys - 1) / kKeys, query_blocks = (shape.length + kQueries - 1) / kQueries;
  if (shape.sequences() >= 2 * thread_count() || thread_count() == 1) {
    parallel_for(shape.sequences(), [&](int64_t sequence) {
      const int64_t b = sequence / shape.heads, h = sequence % shape.heads;
      const Head<T> head(in, b, h);
      T* dq = in.dq ? shape.rows<T>(in.dq.tensor, b, h) : nullptr;
      for (int64_t block = 0; block < key_blocks; ++block) key_block(in, head, b, h, block * kKeys, dq);
    });
    return;
  }
  // Few heads: key blocks and query blocks apart, each recomputing its tiles. Sums keep their order, so results are the same bits.
  parallel_for(shape.sequences() * key_blocks, [&](int64_t task) {
    const int64_t sequence = task / key_blocks, b = sequence / shape.heads, h = sequence % shape.heads;
    key_block<T>(in, Head<T>(in, b, h), b, h, task % key_blocks * kKeys, nullptr);
  });
  if (!in.dq) return;
  parallel_for(shape.sequences() * query_blocks, [&](int64_t task) {
    const int64_t sequence = task / query_blocks, b = sequence / shape.heads, h = sequence % shape.heads;
    query_block<T>(in, Head<T>(in, b, h), b, h, (query_blocks - 1 - task % query_blocks) * kQueries);
  });
}

template <class T>
void output_dots(const HeadShape& shape, const Tensor& d_o, const Tensor& o, const Tensor& mean) {
  constexpr int64_t kRows = 256;
  const int64_t blocks = (shape.length + kRows - 1) / kRows;
  parallel_for(shape.sequences() * blocks, [&](int64_t task) {
    const int64_t sequence = task / blocks, b = sequence / shape.heads, h = sequence % shape.heads, first = task % blocks * kRows;
    const int64_t offset = first * shape.stride();
    dot_rows(shape.rows<T>(d_o, b, h) + offset, shape.rows<T>(o, b, h) + offset, std::min(kRows, shape.length - first), shape.width,
             shape.stride(), shape.line<T>(mean, b, h) + first);
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
