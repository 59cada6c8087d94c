#include "kernels/ops/avey/context_weights.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/simd.h"

namespace saccade::avey {
namespace {

template <class T>
SACCADE_INLINE void inverse_norms_impl(const T* z, T* inverse, int64_t n, int64_t r) {
  for (int64_t t = 0; t < n; ++t) {
    const T* row = z + t * r;
    const T squares = lane_sum<T>(r, [&](int64_t i) SACCADE_INLINE_LAMBDA { return row[i] * row[i]; });
    inverse[t] = 1 / std::sqrt(squares + static_cast<T>(kCosineEps));
  }
}
SACCADE_SIMD void inverse_norms(const float* z, float* inverse, int64_t n, int64_t r) { inverse_norms_impl(z, inverse, n, r); }
SACCADE_SIMD void inverse_norms(const double* z, double* inverse, int64_t n, int64_t r) { inverse_norms_impl(z, inverse, n, r); }

template <class T>
SACCADE_INLINE void weigh_block_impl(T* gram, const T* __restrict inverse, const T* a, int64_t C, int64_t first, int64_t count,
                                     bool dynamic) {
  const int64_t columns = first + count;
  for (int64_t t = first; t < columns; ++t) {
    T* __restrict w = gram + (t - first) * columns;
    const T* __restrict row = a + t * C;
    if (dynamic) {
      const T scale = inverse[t];
      for (int64_t j = 0; j <= t; ++j) w[j] *= row[j] * (scale * inverse[j]);
    } else {
      for (int64_t j = 0; j <= t; ++j) w[j] = row[j];
    }
    for (int64_t j = t + 1; j < columns; ++j) w[j] = 0;
  }
}

}  // namespace

SACCADE_SIMD void weigh_block(float* gram, const float* inverse, const float* a, int64_t C, int64_t first, int64_t count, bool dynamic) {
  weigh_block_impl(gram, inverse, a, C, first, count, dynamic);
}
SACCADE_SIMD void weigh_block(double* gram, const double* inverse, const double* a, int64_t C, int64_t first, int64_t count, bool dynamic) {
  weigh_block_impl(gram, inverse, a, C, first, count, dynamic);
}

template <class T>
void PackedContext<T>::load(const T* rows, int64_t width, const ContextRows& context) {
  r = width, n = context.size();
  z.resize(static_cast<size_t>(n * r));
  inverse.resize(static_cast<size_t>(n));
  T* to = z.data();
  for (const auto& run : context.runs) to = std::copy_n(rows + run.row * r, run.count * r, to);
  inverse_norms(z.data(), inverse.data(), n, r);
}

template <class T>
void gram_block(const PackedContext<T>& c, int64_t first, int64_t count, T* gram) {
  const int64_t columns = first + count;
  cpu::gemm_serial<T>(false, true, count, columns, c.r, 1, c.row(first), c.r, c.z.data(), c.r, false, gram, columns);
}

template struct PackedContext<float>;
template struct PackedContext<double>;
template void gram_block<float>(const PackedContext<float>&, int64_t, int64_t, float*);
template void gram_block<double>(const PackedContext<double>&, int64_t, int64_t, double*);

}  // namespace saccade::avey
