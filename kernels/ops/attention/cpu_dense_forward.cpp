#include <algorithm>
#include <limits>

#include "kernels/engine/parallel.h"
#include "kernels/ops/attention/cpu_dense.h"
#include "kernels/ops/attention/cpu_head_tiles.h"

namespace saccade::cpu {
namespace {

/// Rows [first, first + n) of one head: all their key tiles, in order.
template <class T>
void forward_block(const DenseForward& in, int64_t b, int64_t h, int64_t first, int64_t n) {
  const HeadShape& shape = in.shape;
  const HeadShape keys{shape.batch, in.capacity ? in.capacity : shape.length, shape.heads, shape.width};
  const HeadKeys<T> head(keys, in.options, in.k, in.v, b, h);
  const int64_t position = in.first + first;
  const QueryRows<T> queries{shape.rows<T>(in.q, b, h) + first * shape.stride(), shape.stride(), n, position};
  T* o = shape.rows<T>(in.o, b, h) + first * shape.stride();
  T max[kTileQueries], sum[kTileQueries], weighted[kTileQueries];
  std::fill(max, max + n, -std::numeric_limits<T>::infinity());
  int32_t* best = in.best ? in.best.data<int32_t>() + (b * shape.heads + h) * shape.length + first : nullptr;
  const SoftmaxState<T> state{max, sum, in.entropy ? weighted : nullptr, best};

  const int64_t oldest = head.window > 0 ? std::max<int64_t>(0, position - head.window + 1) : 0;
  absorb_keys(head, queries, oldest / kTileKeys * kTileKeys, position + n, state, o);
  T* entropy = shape.of_head<T>(in.entropy, b, h);
  finish_rows(state, n, shape.width, o, shape.stride(), shape.of_head<T>(in.lse, b, h) + first, entropy ? entropy + first : nullptr);
}

}  // namespace

template <class T>
void dense_forward(const DenseForward& in) {
  // Long blocks pack keys less often; short ones keep all threads busy when there are few heads.
  const HeadShape& shape = in.shape;
  const int64_t rows = shape.sequences() * shape.length >= 16 * kTileQueries ? kTileQueries : kTileKeys;
  const int64_t blocks = (shape.length + rows - 1) / rows;
  parallel_for(shape.sequences() * blocks, [&](int64_t task) {
    const int64_t sequence = task / blocks, first = (blocks - 1 - task % blocks) * rows;  // the longest first
    forward_block<T>(in, sequence / shape.heads, sequence % shape.heads, first, std::min(rows, shape.length - first));
  });
}

template void dense_forward<float>(const DenseForward&);
template void dense_forward<double>(const DenseForward&);

}  // namespace saccade::cpu
