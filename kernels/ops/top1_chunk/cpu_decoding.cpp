#include "kernels/ops/top1_chunk/cpu_decoding.h"

#include <limits>

#include "kernels/engine/parallel.h"
#include "kernels/ops/attention/cpu_head_tiles.h"

namespace saccade::cpu {
namespace {

/// The newest queries of one head, at most kTileQueries of them, all in one chunk.
template <class T>
void attend(const ChunkProblem& problem, const HeadKeys<T>& head, const QueryRows<T>& queries, const int32_t* selected, T* o) {
  const int64_t chunk = problem.options.chunk, top_k = problem.options.top_k, own = queries.first / chunk * chunk;
  T max[kTileQueries], sum[kTileQueries];
  std::fill_n(max, queries.rows, -std::numeric_limits<T>::infinity());
  for (int64_t r = 0; r < queries.rows; ++r)
    for (int64_t slot = 0; slot < top_k; ++slot) {
      const int64_t c = selected[r * top_k + slot];
      if (c >= 0)
        absorb_keys<T>(head, {queries.q + r * queries.stride, queries.stride, 1, queries.first + r}, c * chunk, (c + 1) * chunk,
                       {max + r, sum + r}, o + r * queries.stride);
    }
  const SoftmaxState<T> state{max, sum};
  absorb_keys<T>(head, queries, own, queries.first + queries.rows, state, o);
  finish_rows(state, queries.rows, head.width, o, queries.stride, max, static_cast<T*>(nullptr));
}

}  // namespace

template <class T>
void extend_mean_keys(const Tensor& k, const Tensor& means, int64_t chunk, int64_t first, int64_t n) {
  const int64_t row = k.dim(2) * k.dim(3), begin = first / chunk, end = (first + n) / chunk;
  for (int64_t b = 0; b < k.dim(0); ++b)
    for (int64_t c = begin; c < end; ++c) {
      const T* from = k.data<T>() + (b * k.dim(1) + c * chunk) * row;
      T* mean = means.data<T>() + (b * means.dim(1) + c) * row;
      std::copy_n(from, row, mean);
      for (int64_t j = 1; j < chunk; ++j)
        for (int64_t i = 0; i < row; ++i) mean[i] += from[j * row + i];
      for (int64_t i = 0; i < row; ++i) mean[i] /= static_cast<T>(chunk);
    }
}

template <class T>
void cached_chunks(const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& selected, int64_t first,
                   const Tensor& o) {
  const HeadShape queries{problem.shape.batch, q.dim(1), problem.shape.heads, problem.shape.width};
  const int64_t n = queries.length, stride = queries.stride(), chunk = problem.options.chunk;
  parallel_for(queries.sequences(), [&](int64_t batch_head) {
    const int64_t b = batch_head / queries.heads, h = batch_head % queries.heads;
    const HeadKeys<T> head(problem.shape, problem.score, k, v, b, h);
    for (int64_t r = 0, rows = 0; r < n; r += rows) {
      const int64_t position = first + r;
      rows = std::min({kTileQueries, n - r, chunk - position % chunk});
      attend<T>(problem, head, {queries.rows<T>(q, b, h) + r * stride, stride, rows, position},
                selected.data<int32_t>() + (batch_head * n + r) * problem.options.top_k, queries.rows<T>(o, b, h) + r * stride);
    }
  });
}

#define SACCADE_INSTANTIATE(T)                                                                \
  template void extend_mean_keys<T>(const Tensor&, const Tensor&, int64_t, int64_t, int64_t); \
  template void cached_chunks<T>(const ChunkProblem&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t, const Tensor&);
SACCADE_INSTANTIATE(float)
SACCADE_INSTANTIATE(double)
#undef SACCADE_INSTANTIATE

}  // namespace saccade::cpu
