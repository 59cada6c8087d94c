#include "kernels/ops/attention/cpu_score_tile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/lanes.h"

namespace saccade::cpu {
namespace {

template <class T>
constexpr T kNothing = -std::numeric_limits<T>::infinity();

template <class T>
SACCADE_INLINE void add_bias(const ScoreTile<T>& tile, T* s, int64_t r, int64_t begin, int64_t end) {
  if (tile.slope == 0) return;
  const int64_t distance = tile.position(r) - tile.first_key;
  for (int64_t c = begin; c < end; ++c) s[c] -= tile.slope * static_cast<T>(static_cast<int32_t>(distance - c));
}

/// out = exp(s − shift); returns the sum. out may be s.
template <class T>
SACCADE_INLINE T exponentials(const T* s, T shift, int64_t n, T* out) {
  Lanes<T> total = {}, x;
  for (int64_t c = 0; c < n; c += kLanes<T>) {
    load_some(s + c, n - c, x);
    x -= shift;
    exponential(x);
    store_some(x, n - c, out + c);
    total += x;
  }
  return sum_lanes<T>(total);
}

template <class T>
SACCADE_INLINE void zero_outside(T* s, int64_t begin, int64_t end, int64_t n) {
  std::fill(s, s + std::min(begin, n), T(0));
  std::fill(s + end, s + n, T(0));
}

/// Σ exp(s − m)(s − m); a probability of zero counts as nothing.
template <class T>
SACCADE_INLINE T weighted_sum(const T* s, T shift, int64_t n) {
  T total = 0, p[kLanes<T>];
  for (int64_t c = 0; c < n; c += kLanes<T>) {
    const int64_t count = std::min(n - c, kLanes<T>);
    exponentials(s + c, shift, count, p);
    for (int64_t i = 0; i < count; ++i) total += p[i] > 0 ? p[i] * (s[c + i] - shift) : T(0);
  }
  return total;
}

template <class T>
SACCADE_INLINE void softmax_row(const ScoreTile<T>& tile, const SoftmaxState<T>& state, int64_t r, T& correction) {
  T* s = tile.s + r * tile.ld;
  const int64_t begin = tile.begin(r), end = tile.end(r), slot = tile.slot(r);
  const T before = state.max[slot];
  if (begin >= end) {
    std::fill(s, s + tile.keys, T(0));
    correction = before == kNothing<T> ? T(0) : T(1);
    return;
  }
  add_bias(tile, s, r, begin, end);
  const T top = largest(s + begin, end - begin);
  const T max = std::max(before, top);
  if (state.best && top > before) state.best[slot] = static_cast<int32_t>(tile.first_key + (std::find(s + begin, s + end, top) - s));
  correction = before == kNothing<T> ? T(0) : fast_exp(before - max);
  if (state.weighted) {
    const T earlier = correction > 0 ? correction * (state.weighted[slot] + (before - max) * state.sum[slot]) : T(0);
    state.weighted[slot] = earlier + weighted_sum(s + begin, max, end - begin);
  }
  const T earlier = correction > 0 ? correction * state.sum[slot] : T(0);
  state.sum[slot] = earlier + exponentials(s + begin, max, end - begin, s + begin);
  zero_outside(s, begin, end, tile.keys);
  state.max[slot] = max;
}

template <class T>
SACCADE_INLINE void softmax_step_impl(const ScoreTile<T>& tile, const SoftmaxState<T>& state, T* correction) {
  for (int64_t r = 0; r < tile.rows; ++r) softmax_row(tile, state, r, correction[r]);
}

template <class T>
SACCADE_INLINE T sum_of_exponentials(const T* s, T shift, int64_t n) {
  Lanes<T> total = {}, x;
  int64_t c = 0;
  for (; c + kLanes<T> <= n; c += kLanes<T>) {
    load(s + c, x);
    x -= shift;
    exponential(x);
    total += x;
  }
  T rest[kLanes<T>];
  return sum_lanes<T>(total) + exponentials(s + c, shift, n - c, rest);
}

template <class T>
SACCADE_INLINE void mass_step_impl(const ScoreTile<T>& tile, T* max, T* sum) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    T* s = tile.s + r * tile.ld;
    const int64_t begin = tile.begin(r), end = tile.end(r);
    if (begin >= end) continue;
    add_bias(tile, s, r, begin, end);
    const T top = std::max(max[r], largest(s + begin, end - begin));
    const T earlier = max[r] == kNothing<T> ? T(0) : sum[r] * fast_exp(max[r] - top);
    sum[r] = earlier + sum_of_exponentials(s + begin, top, end - begin);
    max[r] = top;
  }
}

template <class T>
SACCADE_INLINE void log_of_mass_impl(const T* max, const T* sum, int64_t rows, T* out, int64_t ld) {
  for (int64_t r = 0; r < rows; ++r) out[r * ld] = max[r] == kNothing<T> ? kNothing<T> : max[r] + std::log(sum[r]);
}

template <class T>
SACCADE_INLINE void merge_rows_impl(const ScoreTile<T>& tile, const T* correction, const T* product, int64_t width, T* o, int64_t stride) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    T* row = o + tile.slot(r) * stride;
    const T* p = product + r * width;
    const T c = correction[r];
    if (c == 0) {
      std::copy(p, p + width, row);
    } else {
      for (int64_t i = 0; i < width; ++i) row[i] = row[i] * c + p[i];
    }
  }
}

template <class T>
SACCADE_INLINE void finish_rows_impl(const SoftmaxState<T>& state, int64_t n, int64_t width, T* o, int64_t stride, T* lse, T* entropy) {
  for (int64_t r = 0; r < n; ++r) {
    T* row = o + r * stride;
    const T inverse = 1 / state.sum[r];
    for (int64_t i = 0; i < width; ++i) row[i] *= inverse;
    const T log_sum = std::log(state.sum[r]);
    if (entropy) entropy[r] = log_sum - state.weighted[r] * inverse;
    lse[r] = state.max[r] + log_sum;
  }
}

template <class T>
SACCADE_INLINE void gradient_step_impl(const ScoreTile<T>& tile, const T* lse, const T* d, T scale, T* dp) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    T* __restrict__ p = tile.s + r * tile.ld;
    T* __restrict__ ds = dp + r * tile.ld;
    const int64_t begin = std::min(tile.begin(r), tile.end(r)), end = tile.end(r), slot = tile.slot(r);
    add_bias(tile, p, r, begin, end);
    const T shift = lse[slot], delta = d[slot];
    Lanes<T> x, y;
    for (int64_t c = begin; c < end; c += kLanes<T>) {
      load_some(p + c, end - c, x);
      load_some(ds + c, end - c, y);
      x -= shift;
      exponential(x);
      y = x * (y - delta) * scale;
      store_some(x, end - c, p + c);
      store_some(y, end - c, ds + c);
    }
    zero_outside(p, begin, end, tile.keys);
    zero_outside(ds, begin, end, tile.keys);
  }
}

template <class T>
SACCADE_INLINE void probability_step_impl(const ScoreTile<T>& tile, const T* lse) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    T* s = tile.s + r * tile.ld;
    const int64_t begin = std::min(tile.begin(r), tile.end(r)), end = tile.end(r);
    add_bias(tile, s, r, begin, end);
    exponentials(s + begin, lse[tile.slot(r)], end - begin, s + begin);
    zero_outside(s, begin, end, tile.keys);
  }
}

template <class T>
SACCADE_INLINE void softmax_rows_impl(const ScoreTile<T>& tile) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    T* s = tile.s + r * tile.ld;
    const int64_t begin = std::min(tile.begin(r), tile.end(r)), end = tile.end(r);
    add_bias(tile, s, r, begin, end);
    const T inverse = 1 / exponentials(s + begin, largest(s + begin, end - begin), end - begin, s + begin);
    for (int64_t c = begin; c < end; ++c) s[c] *= inverse;
    zero_outside(s, begin, end, tile.keys);
  }
}

template <class T>
SACCADE_INLINE void dot_rows_impl(const T* x, const T* y, int64_t rows, int64_t width, int64_t stride, T* out) {
  for (int64_t r = 0; r < rows; ++r) out[r] = dot(x + r * stride, y + r * stride, width);
}

}  // namespace

SACCADE_SIMD void softmax_step(const ScoreTile<float>& tile, const SoftmaxState<float>& state, float* correction) {
  softmax_step_impl(tile, state, correction);
}
SACCADE_SIMD void softmax_step(const ScoreTile<double>& tile, const SoftmaxState<double>& state, double* correction) {
  softmax_step_impl(tile, state, correction);
}
SACCADE_SIMD void mass_step(const ScoreTile<float>& tile, float* max, float* sum) { mass_step_impl(tile, max, sum); }
SACCADE_SIMD void mass_step(const ScoreTile<double>& tile, double* max, double* sum) { mass_step_impl(tile, max, sum); }
SACCADE_SIMD void log_of_mass(const float* max, const float* sum, int64_t rows, float* out, int64_t ld) {
  log_of_mass_impl(max, sum, rows, out, ld);
}
SACCADE_SIMD void log_of_mass(const double* max, const double* sum, int64_t rows, double* out, int64_t ld) {
  log_of_mass_impl(max, sum, rows, out, ld);
}
SACCADE_SIMD void merge_rows(const ScoreTile<float>& tile, const float* correction, const float* product, int64_t width, float* o,
                             int64_t stride) {
  merge_rows_impl(tile, correction, product, width, o, stride);
}
SACCADE_SIMD void merge_rows(const ScoreTile<double>& tile, const double* correction, const double* product, int64_t width, double* o,
                             int64_t stride) {
  merge_rows_impl(tile, correction, product, width, o, stride);
}
SACCADE_SIMD void finish_rows(const SoftmaxState<float>& state, int64_t n, int64_t width, float* o, int64_t stride, float* lse,
                              float* entropy) {
  finish_rows_impl(state, n, width, o, stride, lse, entropy);
}
SACCADE_SIMD void finish_rows(const SoftmaxState<double>& state, int64_t n, int64_t width, double* o, int64_t stride, double* lse,
                              double* entropy) {
  finish_rows_impl(state, n, width, o, stride, lse, entropy);
}
SACCADE_SIMD void gradient_step(const ScoreTile<float>& tile, const float* lse, const float* d, float scale, float* dp) {
  gradient_step_impl(tile, lse, d, scale, dp);
}
SACCADE_SIMD void gradient_step(const ScoreTile<double>& tile, const double* lse, const double* d, double scale, double* dp) {
  gradient_step_impl(tile, lse, d, scale, dp);
}
SACCADE_SIMD void probability_step(const ScoreTile<float>& tile, const float* lse) { probability_step_impl(tile, lse); }
SACCADE_SIMD void probability_step(const ScoreTile<double>& tile, const double* lse) { probability_step_impl(tile, lse); }
SACCADE_SIMD void softmax_rows(const ScoreTile<float>& tile) { softmax_rows_impl(tile); }
SACCADE_SIMD void softmax_rows(const ScoreTile<double>& tile) { softmax_rows_impl(tile); }
SACCADE_SIMD void dot_rows(const float* x, const float* y, int64_t rows, int64_t width, int64_t stride, float* out) {
  dot_rows_impl(x, y, rows, width, stride, out);
}
SACCADE_SIMD void dot_rows(const double* x, const double* y, int64_t rows, int64_t width, int64_t stride, double* out) {
  dot_rows_impl(x, y, rows, width, stride, out);
}

}  // namespace saccade::cpu
