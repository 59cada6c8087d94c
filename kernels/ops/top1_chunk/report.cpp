#include "kernels/ops/top1_chunk/report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/engine/parallel.h"

namespace saccade::cpu {
namespace {

/// ln(e^a + e^b)
template <class T>
T log_add(T a, T b) {
  const T high = std::max(a, b), low = std::min(a, b);
  return low == -std::numeric_limits<T>::infinity() ? high : high + std::log1p(std::exp(low - high));
}

/// Score of candidate c that decided for a query; score [B, H, rows, chunks].
template <class T>
T deciding_score(const ChunkProblem& problem, const T* score, int64_t rows, int64_t batch_head, int64_t row, int64_t c) {
  const int64_t heads = problem.shape.heads, chunks = problem.chunks();
  if (!problem.options.share_selection) return score[(batch_head * rows + row) * chunks + c];
  T total = 0;
  for (int64_t h = 0; h < heads; ++h) total += score[((batch_head / heads * heads + h) * rows + row) * chunks + c];
  return total;
}

}  // namespace

template <class T>
void selection_margin(const ChunkProblem& problem, const Tensor& score, int64_t first, const Tensor& selected, const Tensor& margin) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const int64_t length = problem.shape.length, top_k = problem.options.top_k, rows = score.dim(2);
  parallel_for(problem.shape.sequences(), [&](int64_t batch_head) {
    for (int64_t t = first; t < first + rows; ++t) {
      const int32_t* chosen = selected.data<int32_t>() + (batch_head * length + t) * top_k;
      const int64_t candidates = problem.candidates(t);
      T least = infinity, best_other = -infinity;
      bool others = false;
      for (int64_t c = 0; c < candidates; ++c) {
        const T s = deciding_score(problem, score.data<T>(), rows, batch_head, t - first, c);
        if (std::find(chosen, chosen + top_k, static_cast<int32_t>(c)) != chosen + top_k)
          least = std::min(least, s);
        else
          best_other = std::max(best_other, s), others = true;
      }
      const T ahead = others ? least - best_other : infinity;
      margin.data<T>()[batch_head * length + t] = candidates == 0 ? std::numeric_limits<T>::quiet_NaN() : ahead;
    }
  });
}

template <class T>
void captured_mass(const ChunkProblem& problem, const Tensor& log_mass, int64_t first, const Tensor& selected, const Tensor& lse,
                   const Tensor& captured) {
  const int64_t length = problem.shape.length, chunks = problem.chunks(), top_k = problem.options.top_k, rows = log_mass.dim(2);
  parallel_for(problem.shape.sequences(), [&](int64_t batch_head) {
    for (int64_t t = first; t < first + rows; ++t) {
      const int64_t at = batch_head * length + t;
      const T* mass = log_mass.data<T>() + (batch_head * rows + t - first) * chunks;
      const int32_t* chosen = selected.data<int32_t>() + at * top_k;
      T inside = -std::numeric_limits<T>::infinity(), all = lse.data<T>()[at];
      for (int64_t c = 0; c < problem.candidates(t); ++c) {
        if (std::find(chosen, chosen + top_k, static_cast<int32_t>(c)) != chosen + top_k) {
          inside = log_add(inside, mass[c]);
        } else {
          all = log_add(all, mass[c]);
        }
      }
      captured.data<T>()[at] = std::exp(inside - all);
    }
  });
}

template void selection_margin<float>(const ChunkProblem&, const Tensor&, int64_t, const Tensor&, const Tensor&);
template void selection_margin<double>(const ChunkProblem&, const Tensor&, int64_t, const Tensor&, const Tensor&);
template void captured_mass<float>(const ChunkProblem&, const Tensor&, int64_t, const Tensor&, const Tensor&, const Tensor&);
template void captured_mass<double>(const ChunkProblem&, const Tensor&, int64_t, const Tensor&, const Tensor&, const Tensor&);

}  // namespace saccade::cpu
