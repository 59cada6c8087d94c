#include "kernels/ops/taylor_attention/cpu_features.h"

#include <algorithm>

#include "kernels/cpu/simd.h"

namespace saccade::cpu {
namespace {

/// d^{−1/4}, 1 / √(2d), 1 / √d
template <class T>
struct Factors {
  T linear, square, product;
  explicit Factors(int64_t d)
      : linear(static_cast<T>(1 / std::sqrt(std::sqrt(static_cast<double>(d))))),
        square(static_cast<T>(1 / std::sqrt(2 * static_cast<double>(d)))),
        product(static_cast<T>(1 / std::sqrt(static_cast<double>(d)))) {}
};

template <class T>
SACCADE_INLINE void feature_rows(const Factors<T>& f, const T* x, int64_t x_row, int64_t rows, int64_t d, T* phi) {
  for (int64_t row = 0; row < rows; ++row, x += x_row) {
    *phi++ = 1;
    for (int64_t i = 0; i < d; ++i) phi[i] = x[i] * f.linear;
    phi += d;
    for (int64_t i = 0; i < d; phi += d - i, ++i) {
      const T factor = x[i] * f.product;
      phi[0] = x[i] * x[i] * f.square;
      for (int64_t j = i + 1; j < d; ++j) phi[j - i] = factor * x[j];
    }
  }
}

template <class T>
SACCADE_INLINE void gradient_rows(const Factors<T>& f, const T* x, int64_t x_row, int64_t rows, int64_t d, const T* d_phi, T* dx) {
  for (int64_t row = 0; row < rows; ++row, x += x_row, dx += x_row) {
    ++d_phi;
    for (int64_t i = 0; i < d; ++i) dx[i] += f.linear * d_phi[i];
    d_phi += d;
    for (int64_t i = 0; i < d; d_phi += d - i, ++i) {
      const T factor = x[i] * f.product;
      for (int64_t j = i + 1; j < d; ++j) dx[j] += factor * d_phi[j - i];
      const T* other = x + i;
      const T along = lane_sum<T>(d - i - 1, [&](int64_t j) SACCADE_INLINE_LAMBDA { return other[j + 1] * d_phi[j + 1]; });
      dx[i] += 2 * f.square * x[i] * d_phi[0] + f.product * along;
    }
  }
}

template <class T>
SACCADE_INLINE void series_rows(const T* s, int64_t rows, int64_t n, int64_t first_visible, T* p, T* sums) {
  for (int64_t r = 0; r < rows; ++r, s += n, p += n) {
    const int64_t seen = std::min(n, first_visible + r + 1);
    for (int64_t j = 0; j < seen; ++j) p[j] = T(1) + s[j] * (T(1) + T(0.5) * s[j]);
    for (int64_t j = seen; j < n; ++j) p[j] = 0;
    sums[r] = lane_sum<T>(seen, [&](int64_t j) SACCADE_INLINE_LAMBDA { return p[j]; });
  }
}

template <class T>
SACCADE_INLINE void slope_rows(const T* s, int64_t rows, int64_t n, int64_t first_visible, const T* d_sums, T scale, T* dp) {
  for (int64_t r = 0; r < rows; ++r, s += n, dp += n) {
    const int64_t seen = std::min(n, first_visible + r + 1);
    for (int64_t j = 0; j < seen; ++j) dp[j] = (dp[j] + d_sums[r]) * (T(1) + s[j]) * scale;
    for (int64_t j = seen; j < n; ++j) dp[j] = 0;
  }
}

}  // namespace

#define ENTRY_POINTS(T)                                                                                                          \
  SACCADE_SIMD void features(const T* x, int64_t x_row, int64_t rows, int64_t d, T* phi) {                                       \
    feature_rows(Factors<T>(d), x, x_row, rows, d, phi);                                                                         \
  }                                                                                                                              \
  SACCADE_SIMD void add_feature_gradients(const T* x, int64_t x_row, int64_t rows, int64_t d, const T* d_phi, T* dx) {           \
    gradient_rows(Factors<T>(d), x, x_row, rows, d, d_phi, dx);                                                                  \
  }                                                                                                                              \
  SACCADE_SIMD void taylor_rows(const T* s, int64_t rows, int64_t n, int64_t first_visible, T* p, T* sums) {                     \
    series_rows(s, rows, n, first_visible, p, sums);                                                                             \
  }                                                                                                                              \
  SACCADE_SIMD void taylor_slopes(const T* s, int64_t rows, int64_t n, int64_t first_visible, const T* d_sums, T scale, T* dp) { \
    slope_rows(s, rows, n, first_visible, d_sums, scale, dp);                                                                    \
  }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

}  // namespace saccade::cpu
