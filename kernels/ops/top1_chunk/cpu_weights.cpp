#include "kernels/ops/top1_chunk/cpu_weights.h"

#include "kernels/cpu/gemm.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/attention/cpu_score_tile.h"

namespace saccade::cpu {

template <class T>
void chunk_weights(const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& selected, const Tensor& lse,
                   const Sequences& sequences, const Tensor& weights) {
  const HeadShape& shape = problem.shape;
  const int64_t length = shape.length, chunk = problem.options.chunk, top_k = problem.options.top_k, stride = shape.stride();
  parallel_for(sequences.count * shape.heads * length, [&](int64_t task) {
    const int64_t batch_head = sequences.first * shape.heads + task / length, t = task % length;
    const int64_t b = batch_head / shape.heads, h = batch_head % shape.heads;
    T* row = weights.data<T>() + task * length;
    gemm_serial<T>(false, true, 1, length, shape.width, static_cast<T>(problem.score.scale), shape.rows<T>(q, b, h) + t * stride, stride,
                   shape.rows<T>(k, b, h), stride, false, row, length);
    const int32_t* chosen = selected.data<int32_t>() + (batch_head * length + t) * top_k;
    for (int64_t begin = 0; begin < length; begin += chunk) {
      const int64_t c = begin / chunk, keys = std::min(chunk, length - begin);
      if (c != t / chunk && std::find(chosen, chosen + top_k, static_cast<int32_t>(c)) == chosen + top_k) {
        std::fill_n(row + begin, keys, T(0));
        continue;
      }
      ScoreTile<T> tile{row + begin, 1, keys, length, t, begin};
      tile.window = problem.score.window;
      tile.slope = static_cast<T>(alibi_slope(problem.score, h, shape.heads));
      probability_step(tile, lse.data<T>() + batch_head * length + t);
    }
  });
}

template void chunk_weights<float>(const ChunkProblem&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Sequences&,
                                   const Tensor&);
template void chunk_weights<double>(const ChunkProblem&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Sequences&,
                                    const Tensor&);

}  // namespace saccade::cpu
