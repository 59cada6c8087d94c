#include "kernels/ops/delta_rule/cpu_triangle.h"

#include "kernels/cpu/simd.h"

namespace saccade::cpu {
namespace {

template <class T>
SACCADE_INLINE void multiply_rows(const T* gamma, int64_t size, int64_t row, int64_t diagonal, T* m) {
  for (int64_t i = 0; i < size; ++i) {
    T* x = m + i * row;
    for (int64_t j = 0; j < i + diagonal; ++j) x[j] *= gamma[i * row + j];
    for (int64_t j = i + diagonal; j < size; ++j) x[j] = 0;
  }
}

template <class T>
SACCADE_INLINE void subtract_rows(const T* v, int64_t v_row, int64_t size, int64_t width, T* r) {
  for (int64_t i = 0; i < size; ++i)
    for (int64_t c = 0; c < width; ++c) r[i * width + c] = v[i * v_row + c] - r[i * width + c];
}

template <class T>
SACCADE_INLINE void forward_rows(const T* beta, const T* n, int64_t size, int64_t row, int64_t width, T* r) {
  for (int64_t i = 0; i < size; ++i) {
    T* __restrict__ x = r + i * width;
    for (int64_t j = 0; j < i; ++j) {
      const T factor = n[i * row + j], *from = r + j * width;
      for (int64_t c = 0; c < width; ++c) x[c] -= factor * from[c];
    }
    for (int64_t c = 0; c < width; ++c) x[c] *= beta[i];
  }
}

template <class T>
SACCADE_INLINE void backward_rows(const T* beta, const T* n, int64_t size, int64_t row, int64_t width, T* d) {
  for (int64_t j = size; j-- > 1;) {
    const T* from = d + j * width;
    for (int64_t i = 0; i < j; ++i) {
      T* __restrict__ y = d + i * width;
      const T factor = beta[j] * n[j * row + i];
      for (int64_t c = 0; c < width; ++c) y[c] -= factor * from[c];
    }
  }
}

template <class T>
SACCADE_INLINE void pair_rows(const T* beta, const T* gamma, T scale, int64_t size, int64_t row, T* dp, const T* da, const T* p, const T* n,
                              T* dn, T* dG) {
  for (int64_t i = 0; i < size; ++i) dG[i] = 0;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t at = i * row;
    const T b = beta[i];
    const auto f = [&](int64_t j) SACCADE_INLINE_LAMBDA { return dp[at + j] * p[at + j] + b * da[at + j] * n[at + j]; };
    dG[i] += lane_sum<T>(i, f);
    for (int64_t j = 0; j < i; ++j) dG[j] -= f(j);
    for (int64_t j = 0; j < i; ++j) dn[at + j] = b * da[at + j] * gamma[at + j];
    for (int64_t j = 0; j <= i; ++j) dp[at + j] *= scale * gamma[at + j];
    for (int64_t j = i; j < size; ++j) dn[at + j] = 0;
    for (int64_t j = i + 1; j < size; ++j) dp[at + j] = 0;
  }
}

}  // namespace

#define ENTRY_POINTS(T)                                                                                                               \
  SACCADE_SIMD void multiply_lower(const T* gamma, int64_t size, int64_t row, T* m) { multiply_rows(gamma, size, row, 1, m); }        \
  SACCADE_SIMD void multiply_below(const T* gamma, int64_t size, int64_t row, T* m) { multiply_rows(gamma, size, row, 0, m); }        \
  SACCADE_SIMD void subtract_from(const T* v, int64_t v_row, int64_t size, int64_t width, T* r) {                                     \
    subtract_rows(v, v_row, size, width, r);                                                                                          \
  }                                                                                                                                   \
  SACCADE_SIMD void solve_forward(const T* beta, const T* n, int64_t size, int64_t row, int64_t width, T* r) {                        \
    forward_rows(beta, n, size, row, width, r);                                                                                       \
  }                                                                                                                                   \
  SACCADE_SIMD void solve_backward(const T* beta, const T* n, int64_t size, int64_t row, int64_t width, T* d) {                       \
    backward_rows(beta, n, size, row, width, d);                                                                                      \
  }                                                                                                                                   \
  SACCADE_SIMD void pair_gradients(const T* beta, const T* gamma, T scale, int64_t size, int64_t row, T* dp, const T* da, const T* p, \
                                   const T* n, T* dn, T* dG) {                                                                        \
    pair_rows(beta, gamma, scale, size, row, dp, da, p, n, dn, dG);                                                                   \
  }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

}  // namespace saccade::cpu
