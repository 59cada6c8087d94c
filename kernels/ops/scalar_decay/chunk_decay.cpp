#include "kernels/ops/scalar_decay/chunk_decay.h"

#include "kernels/cpu/simd.h"

namespace saccade::cpu {
namespace {

template <class T>
SACCADE_INLINE void scale_rows(const T* G, T end, T sign, int64_t size, const T* from, int64_t from_row, int64_t width, T* to,
                               int64_t to_row) {
  for (int64_t i = 0; i < size; ++i) {
    const T factor = G ? fast_exp(end + sign * G[i]) : T(1);
    for (int64_t c = 0; c < width; ++c) to[i * to_row + c] = factor * from[i * from_row + c];
  }
}

template <class T>
SACCADE_INLINE void decay_rows(const T* G, int64_t size, const T* scores, int64_t row, T* out, int64_t out_row) {
  for (int64_t i = 0; i < size; ++i) {
    const T* s = scores + i * row;
    T* o = out + i * out_row;
    if (G)
      for (int64_t j = 0; j <= i; ++j) o[j] = s[j] * fast_exp(G[i] - G[j]);
    else
      for (int64_t j = 0; j <= i; ++j) o[j] = s[j];
    for (int64_t j = i + 1; j < size; ++j) o[j] = 0;
  }
}

template <class T>
SACCADE_INLINE void matrix_rows(const T* G, int64_t size, T* out, int64_t row) {
  for (int64_t i = 0; i < size; ++i) {
    T* o = out + i * row;
    for (int64_t j = 0; j <= i; ++j) o[j] = G ? fast_exp(G[i] - G[j]) : T(1);
    for (int64_t j = i + 1; j < size; ++j) o[j] = 0;
  }
}

template <class T>
SACCADE_INLINE void add_triangle(const T* from, int64_t from_row, int64_t size, T* to, int64_t to_row) {
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j <= i; ++j) to[i * to_row + j] += from[i * from_row + j];
}

template <class T>
SACCADE_INLINE void decay_gradient_rows(const T* a, const T* b, int64_t row, int64_t size, T* dG) {
  for (int64_t i = 0; i < size; ++i) dG[i] = 0;
  for (int64_t i = 1; i < size; ++i) {
    const T *x = a + i * row, *y = b + i * row;
    dG[i] += lane_sum<T>(i, [&](int64_t j) SACCADE_INLINE_LAMBDA { return x[j] * y[j]; });
    for (int64_t j = 0; j < i; ++j) dG[j] -= x[j] * y[j];
  }
}

template <class T>
SACCADE_INLINE void add_rows(T factor, const T* from, int64_t from_row, int64_t rows, int64_t width, T* to, int64_t to_row) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t c = 0; c < width; ++c) to[i * to_row + c] += factor * from[i * from_row + c];
}

template <class T>
SACCADE_INLINE T dot(const T* a, const T* b, int64_t n) {
  return lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return a[i] * b[i]; });
}

}  // namespace

#define ENTRY_POINTS(T)                                                                                                                    \
  SACCADE_SIMD void scale_by_head(const T* G, int64_t size, const T* from, int64_t from_row, int64_t width, T* to, int64_t to_row) {       \
    scale_rows(G, T(0), T(1), size, from, from_row, width, to, to_row);                                                                    \
  }                                                                                                                                        \
  SACCADE_SIMD void scale_by_tail(const T* G, int64_t size, const T* from, int64_t from_row, int64_t width, T* to, int64_t to_row) {       \
    scale_rows(G, G ? G[size - 1] : T(0), T(-1), size, from, from_row, width, to, to_row);                                                 \
  }                                                                                                                                        \
  SACCADE_SIMD void decay_scores(const T* G, int64_t size, const T* scores, int64_t row, T* out, int64_t out_row) {                        \
    decay_rows(G, size, scores, row, out, out_row);                                                                                        \
  }                                                                                                                                        \
  SACCADE_SIMD void decay_matrix(const T* G, int64_t size, T* out, int64_t row) { matrix_rows(G, size, out, row); }                        \
  SACCADE_SIMD void add_lower(const T* from, int64_t from_row, int64_t size, T* to, int64_t to_row) {                                      \
    add_triangle(from, from_row, size, to, to_row);                                                                                        \
  }                                                                                                                                        \
  SACCADE_SIMD void decay_gradient(const T* a, const T* b, int64_t row, int64_t size, T* dG) { decay_gradient_rows(a, b, row, size, dG); } \
  SACCADE_SIMD void add_scaled(T factor, const T* from, int64_t from_row, int64_t rows, int64_t width, T* to, int64_t to_row) {            \
    add_rows(factor, from, from_row, rows, width, to, to_row);                                                                             \
  }                                                                                                                                        \
  SACCADE_SIMD T dot_rows(const T* a, const T* b, int64_t n) { return dot(a, b, n); }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

}  // namespace saccade::cpu
