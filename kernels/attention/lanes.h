#pragma once
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/simd.h"

namespace saccade::cpu {

/// Sixteen floats or eight doubles: reductions keep this many partial results, so they vectorise and their order is the
/// same for every instruction set.
typedef float FloatLanes __attribute__((vector_size(64)));
typedef double DoubleLanes __attribute__((vector_size(64)));
template <class T>
struct LanesOf;
template <>
struct LanesOf<float> {
  using Type = FloatLanes;
};
template <>
struct LanesOf<double> {
  using Type = DoubleLanes;
};
template <class T>
using Lanes = typename LanesOf<T>::Type;
template <class T>
constexpr int64_t kLanes = 64 / static_cast<int64_t>(sizeof(T));

template <class T>
SACCADE_INLINE void load(const T* x, Lanes<T>& into) {
  std::memcpy(&into, x, sizeof(into));
}

template <class T>
SACCADE_INLINE T sum_lanes(const Lanes<T>& x) {
  T part[kLanes<T>];
  std::memcpy(part, &x, sizeof(x));
  for (int64_t half = kLanes<T> / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i) part[i] += part[i + half];
  return part[0];
}

template <class T>
SACCADE_INLINE T sum(const T* x, int64_t n) {
  Lanes<T> total = {}, v;
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) {
    load(x + i, v);
    total += v;
  }
  T result = sum_lanes<T>(total);
  for (; i < n; ++i) result += x[i];
  return result;
}

template <class T>
SACCADE_INLINE T dot(const T* x, const T* y, int64_t n) {
  Lanes<T> total = {}, a, b;
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) {
    load(x + i, a);
    load(y + i, b);
    total += a * b;
  }
  T result = sum_lanes<T>(total);
  for (; i < n; ++i) result += x[i] * y[i];
  return result;
}

template <class T>
SACCADE_INLINE T largest(const T* x, int64_t n) {
  T result = -std::numeric_limits<T>::infinity();
  int64_t i = 0;
  if (n >= kLanes<T>) {
    Lanes<T> best, v;
    load(x, best);
    for (i = kLanes<T>; i + kLanes<T> <= n; i += kLanes<T>) {
      load(x + i, v);
      best = v > best ? v : best;
    }
    for (int64_t l = 0; l < kLanes<T>; ++l) result = best[l] > result ? best[l] : result;
  }
  for (; i < n; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

}  // namespace saccade::cpu
