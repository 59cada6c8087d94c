#include "kernels/ops/top1_chunk/cpu_scores.h"

#include <limits>

#include "kernels/cpu/gemm.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/attention/cpu_score_tile.h"

namespace saccade::cpu {

template <class T>
int64_t ChunkScorer<T>::group() const {
  return means_ ? kScoreKeys : std::max<int64_t>(1, kScoreKeys / problem_.options.chunk);
}

template <class T>
void ChunkScorer<T>::score(int64_t b, int64_t h, const T* q, int64_t first, int64_t rows, int64_t begin, int64_t end, T* out,
                           int64_t ld) const {
  if (!means_) return log_mass(b, h, q, first, rows, begin, end, out, ld);
  const HeadShape& shape = problem_.shape;
  const int64_t stride = shape.stride();
  const T* mean = means_.data<T>() + ((means_.dim(0) == 1 ? 0 : b) * means_.dim(1) * shape.heads + h) * shape.width;
  gemm_serial<T>(false, true, rows, end - begin, shape.width, static_cast<T>(problem_.score.scale), q, stride, mean + begin * stride,
                 stride, false, out, ld);
  const T slope = static_cast<T>(alibi_slope(problem_.score, h, shape.heads));
  if (slope == T(0)) return;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = begin; c < end; ++c) {
      const T middle = static_cast<T>(c * problem_.options.chunk) + static_cast<T>(problem_.options.chunk - 1) / 2;
      out[r * ld + c - begin] -= slope * (static_cast<T>(first + r) - middle);
    }
}

template <class T>
void ChunkScorer<T>::log_mass(int64_t b, int64_t h, const T* q, int64_t first, int64_t rows, int64_t begin, int64_t end, T* out,
                              int64_t ld) const {
  const HeadShape& shape = problem_.shape;
  const int64_t chunk = problem_.options.chunk, stride = shape.stride();
  const T* k = shape.rows<T>(k_, b, h);
  T* s = scratch<T, 4>(kScoreQueries * kScoreKeys);
  T max[kScoreQueries], sum[kScoreQueries];
  const auto one_chunk = [&](int64_t c, int64_t key, int64_t keys, T* scores) {
    ScoreTile<T> tile{scores, rows, keys, kScoreKeys, first, key};
    tile.window = problem_.score.window;
    tile.slope = static_cast<T>(alibi_slope(problem_.score, h, shape.heads));
    if (key == c * chunk) std::fill(max, max + rows, -std::numeric_limits<T>::infinity());
    mass_step(tile, max, sum);
    if (key + keys == (c + 1) * chunk) log_of_mass(max, sum, rows, out + (c - begin), ld);
  };
  const auto product = [&](int64_t key, int64_t keys) {
    gemm_serial<T>(false, true, rows, keys, shape.width, static_cast<T>(problem_.score.scale), q, stride, k + key * stride, stride, false,
                   s, kScoreKeys);
  };
  if (chunk <= kScoreKeys) {
    product(begin * chunk, (end - begin) * chunk);
    for (int64_t c = begin; c < end; ++c) one_chunk(c, c * chunk, chunk, s + (c - begin) * chunk);
    return;
  }
  for (int64_t c = begin; c < end; ++c)
    for (int64_t key = c * chunk; key < (c + 1) * chunk; key += kScoreKeys) {
      const int64_t keys = std::min(kScoreKeys, (c + 1) * chunk - key);
      product(key, keys);
      one_chunk(c, key, keys, s);
    }
}

template <class T>
void chunk_means(const ChunkProblem& problem, const Tensor& k, const Tensor& means) {
  const int64_t chunk = problem.options.chunk, row = problem.shape.stride(), complete = means.dim(1);
  parallel_for(k.dim(0) * complete, [&](int64_t task) {
    const int64_t b = task / complete, c = task % complete;
    const T* from = k.data<T>() + (b * problem.shape.length + c * chunk) * row;
    T* mean = means.data<T>() + task * row;
    std::copy_n(from, row, mean);
    for (int64_t j = 1; j < chunk; ++j)
      for (int64_t i = 0; i < row; ++i) mean[i] += from[j * row + i];
    for (int64_t i = 0; i < row; ++i) mean[i] /= static_cast<T>(chunk);
  });
}

template <class T>
void score_chunks(const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& means, int64_t from, const Tensor& score) {
  const HeadShape& shape = problem.shape;
  const int64_t queries = score.dim(2), blocks = (queries + kScoreQueries - 1) / kScoreQueries, chunks = problem.chunks();
  const ChunkScorer<T> scorer(problem, k, means);
  parallel_for(shape.sequences() * blocks, [&](int64_t task) {
    const int64_t sequence = task / blocks, b = sequence / shape.heads, h = sequence % shape.heads, row = task % blocks * kScoreQueries;
    const int64_t rows = std::min(kScoreQueries, queries - row), first = from + row, most = problem.candidates(first + rows - 1);
    T* out = score.data<T>() + (sequence * queries + row) * chunks;
    for (int64_t begin = 0; begin < most; begin += scorer.group())
      scorer.score(b, h, shape.rows<T>(q, b, h) + first * shape.stride(), first, rows, begin, std::min(most, begin + scorer.group()),
                   out + begin, chunks);
    for (int64_t r = 0; r < rows; ++r)
      std::fill(out + r * chunks + problem.candidates(first + r), out + (r + 1) * chunks, -std::numeric_limits<T>::infinity());
  });
}

template class ChunkScorer<float>;
template class ChunkScorer<double>;
template void chunk_means<float>(const ChunkProblem&, const Tensor&, const Tensor&);
template void chunk_means<double>(const ChunkProblem&, const Tensor&, const Tensor&);
template void score_chunks<float>(const ChunkProblem&, const Tensor&, const Tensor&, const Tensor&, int64_t, const Tensor&);
template void score_chunks<double>(const ChunkProblem&, const Tensor&, const Tensor&, const Tensor&, int64_t, const Tensor&);

}  // namespace saccade::cpu
