#pragma once
/// Sigmoid, SiLU and softplus with their slopes, for loops inside SACCADE_SIMD functions.
#include "kernels/cpu/simd.h"

namespace saccade {

/// ln(1 + x) for x in [0, 1]. Double: the library's. Float: 2 artanh(x / (2 + x)) by its series, relative error below 2e-7.
SACCADE_INLINE double fast_log1p(double x) { return std::log1p(x); }
SACCADE_INLINE float fast_log1p(float x) {
  const float z = x / (2.0f + x), s = z * z;
  float p = 2.0f / 13;
  p = p * s + 2.0f / 11;
  p = p * s + 2.0f / 9;
  p = p * s + 2.0f / 7;
  p = p * s + 2.0f / 5;
  p = p * s + 2.0f / 3;
  p = p * s + 2.0f;
  return p * z;
}

template <class T>
SACCADE_INLINE T sigmoid(T x) {
  return T(1) / (T(1) + fast_exp(-x));
}

/// silu(x) = x σ(x)
template <class T>
SACCADE_INLINE T silu(T x) {
  return x * sigmoid(x);
}
template <class T>
SACCADE_INLINE T silu_slope(T x) {
  const T s = sigmoid(x);
  return s * (T(1) + x * (T(1) - s));
}

/// softplus(x) = ln(1 + e^x), slope σ(x)
SACCADE_INLINE float magnitude(float x) { return __builtin_fabsf(x); }
SACCADE_INLINE double magnitude(double x) { return __builtin_fabs(x); }
template <class T>
SACCADE_INLINE T softplus(T x) {
  return select(is_positive(x), x, T(0)) + fast_log1p(fast_exp(-magnitude(x)));
}

}  // namespace saccade
