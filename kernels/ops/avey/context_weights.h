#pragma once
#include <cstdint>
#include <vector>

#include "kernels/ops/avey/layout.h"

namespace saccade::avey {

constexpr double kCosineEps = 1e-8;

/// The rows of one context in a row, with the reciprocal of each row's norm: what the products run over.
template <class T>
struct PackedContext {
  std::vector<T> z;        ///< [n, r]
  std::vector<T> inverse;  ///< [n] 1 / sqrt(|z|² + 1e-8)
  int64_t n = 0, r = 0;

  void load(const T* rows, int64_t r, const ContextRows& context);
  const T* row(int64_t t) const { return z.data() + t * r; }
};

/// gram[t, j] = z_t · z_j for rows first … first + count − 1 and j < first + count; row stride first + count.
template <class T>
void gram_block(const PackedContext<T>& context, int64_t first, int64_t count, T* gram);

/// gram → A_tj cos_tj (or A_tj when gram is not wanted: `dynamic` off), zero above the diagonal. In place.
/// `a` points at A[position of row 0, position of row 0], row stride C.
void weigh_block(float* gram, const float* inverse, const float* a, int64_t C, int64_t first, int64_t count, bool dynamic);
void weigh_block(double* gram, const double* inverse, const double* a, int64_t C, int64_t first, int64_t count, bool dynamic);

/// Row blocks of the rows that ask, none across a boundary of runs: f(index of the first row in the context, its row in the
/// matrix, count).
template <class F>
void each_query_block(const ContextRows& context, size_t first_run, int64_t block, F&& f) {
  int64_t index = 0;
  for (size_t i = 0; i < context.runs.size(); ++i) {
    const auto& run = context.runs[i];
    for (int64_t at = 0; i >= first_run && at < run.count; at += block) f(index + at, run.row + at, std::min(block, run.count - at));
    index += run.count;
  }
}

extern template struct PackedContext<float>;
extern template struct PackedContext<double>;
extern template void gram_block<float>(const PackedContext<float>&, int64_t, int64_t, float*);
extern template void gram_block<double>(const PackedContext<double>&, int64_t, int64_t, double*);

}  // namespace saccade::avey
