#include <algorithm>
#include <limits>

#include "kernels/attention/dense.h"
#include "kernels/attention/score_tile.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"

namespace saccade::cpu {
namespace {

constexpr int64_t kQueries = 64, kKeys = 128;

/// Rows [first, first + n) of one head: all their key tiles, in order.
template <class T>
void forward_block(const DenseForward& in, int64_t b, int64_t h, int64_t first, int64_t n) {
  const HeadShape& shape = in.shape;
  const int64_t width = shape.width, stride = shape.stride(), window = in.options.window;
  const T *q = shape.rows<T>(in.q, b, h) + first * stride, *k = shape.rows<T>(in.k, b, h), *v = shape.rows<T>(in.v, b, h);
  T* o = shape.rows<T>(in.o, b, h) + first * stride;
  T *s = scratch<T, 0>(kQueries * kKeys), *product = scratch<T, 1>(kQueries * width);
  T max[kQueries], sum[kQueries], weighted[kQueries], correction[kQueries];
  std::fill(max, max + n, -std::numeric_limits<T>::infinity());
  int32_t* best = in.best ? in.best.data<int32_t>() + (b * shape.heads + h) * shape.length + first : nullptr;
  const SoftmaxState<T> state{max, sum, in.entropy ? weighted : nullptr, best};

  const int64_t oldest = window > 0 ? std::max<int64_t>(0, first - window + 1) : 0;
  for (int64_t key = oldest / kKeys * kKeys; key < first + n; key += kKeys) {
    const int64_t keys = std::min(kKeys, first + n - key);
    gemm_serial<T>(false, true, n, keys, width, static_cast<T>(in.options.scale), q, stride, k + key * stride, stride, false, s, kKeys);
    ScoreTile<T> tile{s, n, keys, kKeys, first, key};
    tile.window = window;
    tile.slope = static_cast<T>(alibi_slope(in.options, h, shape.heads));
    softmax_step(tile, state, correction);
    gemm_serial<T>(false, false, n, width, keys, T(1), s, kKeys, v + key * stride, stride, false, product, width);
    merge_rows(tile, correction, product, width, o, stride);
  }
  T* entropy = shape.line<T>(in.entropy, b, h);
  finish_rows(state, n, width, o, stride, shape.line<T>(in.lse, b, h) + first, entropy ? entropy + first : nullptr);
}

}  // namespace

template <class T>
void dense_forward(const DenseForward& in) {
  const int64_t blocks = (in.shape.length + kQueries - 1) / kQueries;
  parallel_for(in.shape.sequences() * blocks, [&](int64_t task) {
    const int64_t sequence = task / blocks, first = (blocks - 1 - task % blocks) * kQueries;  // the longest first
    forward_block<T>(in, sequence / in.shape.heads, sequence % in.shape.heads, first, std::min(kQueries, in.shape.length - first));
  });
}

template void dense_forward<float>(const DenseForward&);
template void dense_forward<double>(const DenseForward&);

}  // namespace saccade::cpu
