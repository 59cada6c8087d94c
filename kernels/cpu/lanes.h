#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/cpu/simd.h"

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

/// The first `count` elements of x; the rest of the lanes is zero.
template <class T>
SACCADE_INLINE void load_some(const T* x, int64_t count, Lanes<T>& into) {
  if (count >= kLanes<T>) {
    std::memcpy(&into, x, sizeof(into));
  } else {
    into = Lanes<T>{};
    std::memcpy(&into, x, static_cast<size_t>(count) * sizeof(T));
  }
}

/// Stores the first `count` lanes and makes the others zero.
template <class T>
SACCADE_INLINE void store_some(Lanes<T>& from, int64_t count, T* x) {
  if (count >= kLanes<T>) {
    std::memcpy(x, &from, sizeof(from));
    return;
  }
  std::memcpy(x, &from, static_cast<size_t>(count) * sizeof(T));
  load_some(x, count, from);
}

/// e^x in every lane, as fast_exp: a loop over fast_exp is not vectorised under strict floating-point rules.
SACCADE_INLINE void exponential(DoubleLanes& x) {
  for (int i = 0; i < 8; ++i) x[i] = std::exp(x[i]);
}
SACCADE_INLINE void exponential(FloatLanes& x) {
  typedef int32_t IntLanes __attribute__((vector_size(64)));
  constexpr float kRound = 12582912.0f;  // 1.5 · 2^23: adding it leaves the nearest integer in the low bits
  const FloatLanes low = FloatLanes{} - 87.3f, high = FloatLanes{} + 88.0f;
  FloatLanes c = x < high ? x : high;
  c = c > low ? c : low;
  const FloatLanes shifted = c * 1.44269504f + kRound;
  const FloatLanes n = shifted - kRound;
  const FloatLanes r = (c - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
  FloatLanes p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  IntLanes bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits << 23) + 0x3F800000;  // 2^n
  FloatLanes power;
  std::memcpy(&power, &bits, sizeof(bits));
  const FloatLanes y = x < low ? FloatLanes{} : p * power;
  x = x == x ? y : x;
}

}  // namespace saccade::cpu
