#pragma once
/// Hot CPU loops are compiled for several instruction sets, and the program chooses at its start, so a package built for baseline x86-64 is
/// as fast as a local build. Write the loop once as an always-inline template and give it plain
/// (non-template) entry points:
///
///     template <class T> SACCADE_INLINE void scale_impl(T* x, int64_t n, T a) { for (…) x[i] *= a; }
///     SACCADE_SIMD void scale(float* x, int64_t n, float a) { scale_impl(x, n, a); }
///     SACCADE_SIMD void scale(double* x, int64_t n, double a) { scale_impl(x, n, a); }
///
/// Every function called inside must be inlined (std::exp is not: use fast_exp below for float).
#include <bit>
#include <cmath>
#include <cstdint>

#define SACCADE_INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(SACCADE_NO_CLONES)
#define SACCADE_SIMD __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define SACCADE_SIMD
#endif

/// For lambdas that are called inside such loops.
#define SACCADE_INLINE_LAMBDA __attribute__((always_inline))

namespace saccade {

// The functions below choose between bit patterns, as integers: a comparison or operation of floats may trap, and then GCC
// keeps the branch and does not vectorise the loop.

SACCADE_INLINE float select(bool first, float a, float b) {
  const uint32_t mask = -static_cast<uint32_t>(first);
  return std::bit_cast<float>((std::bit_cast<uint32_t>(a) & mask) | (std::bit_cast<uint32_t>(b) & ~mask));
}
SACCADE_INLINE double select(bool first, double a, double b) { return first ? a : b; }

/// x > 0, for selections in loops that shall vectorise (true for +NaN).
SACCADE_INLINE bool is_positive(float x) { return std::bit_cast<int32_t>(x) > 0; }
SACCADE_INLINE bool is_positive(double x) { return std::bit_cast<int64_t>(x) > 0; }

/// e^x. Double: the library's. Float: branch-free so that loops vectorise; relative error below 2e-7 on
/// [-87, 88], 0 below (also for -inf), clamped above; NaN stays NaN.
SACCADE_INLINE double fast_exp(double x) { return std::exp(x); }
SACCADE_INLINE float fast_exp(float x) {
  // As integers, floats of one sign are in order and negative ones have the top bit: clamping is two integer minima.
  const uint32_t bits = std::bit_cast<uint32_t>(x), low = std::bit_cast<uint32_t>(-87.3f);
  const int32_t high = std::bit_cast<int32_t>(88.0f);
  const uint32_t keep = -static_cast<uint32_t>(bits <= low), nan = -static_cast<uint32_t>((bits & 0x7fffffffu) > 0x7f800000u);
  const uint32_t floor = bits < low ? bits : low;
  const float c = std::bit_cast<float>(static_cast<int32_t>(floor) < high ? static_cast<int32_t>(floor) : high);
  const float shifted = c * 1.44269504f + 12582912.0f;  // 1.5 · 2²³: the sum is rounded to an integer and holds it in its low bits
  const float n = shifted - 12582912.0f;
  const float r = (c - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const float scale = std::bit_cast<float>((std::bit_cast<int32_t>(shifted) + 127) << 23);
  return std::bit_cast<float>((std::bit_cast<uint32_t>(p * scale) & keep) | (nan & 0x7fc00000u));
}

/// √x for x >= 0. Double: the library's. Float: three Newton steps, relative error below 3e-7; the library's may set errno,
/// which keeps a loop from vectorising.
SACCADE_INLINE double fast_sqrt(double x) { return std::sqrt(x); }
SACCADE_INLINE float fast_sqrt(float x) {
  float y = std::bit_cast<float>(0x5f3759df - (std::bit_cast<int32_t>(x) >> 1));  // 1 / √x to 3 %
  for (int i = 0; i < 3; ++i) y *= 1.5f - 0.5f * x * y * y;
  return x * y;
}

/// The larger one (either when equal); no promise for NaN.
SACCADE_INLINE double fast_max(double a, double b) { return a > b ? a : b; }
SACCADE_INLINE float fast_max(float a, float b) {
  // Bit patterns of floats order like integers once those of negative numbers are flipped.
  const int32_t i = std::bit_cast<int32_t>(a), j = std::bit_cast<int32_t>(b);
  return (i ^ ((i >> 31) & 0x7fffffff)) > (j ^ ((j >> 31) & 0x7fffffff)) ? std::bit_cast<float>(i) : std::bit_cast<float>(j);
}

/// Φ(x) and φ(x) = Φ'(x) of the standard normal distribution: gelu(x) = x Φ(x), gelu'(x) = Φ(x) + x φ(x).
/// Double: the library's. Float: one shared exponential, absolute error of each below 3e-7.
template <class T>
struct Normal {
  T cdf, pdf;
};
SACCADE_INLINE Normal<double> fast_normal(double x) {
  return {0.5 * std::erfc(-x * 0.70710678118654752), 0.39894228040143268 * std::exp(-0.5 * x * x)};
}
SACCADE_INLINE Normal<float> fast_normal(float x) {
  const float a = __builtin_fabsf(x) * 0.70710678f;
  const float t = 1.0f / (1.0f + 0.3275911f * a);  // Abramowitz and Stegun 7.1.26
  const float p = ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t + 0.254829592f) * t;
  const float e = fast_exp(-0.5f * x * x);
  const float upper = 0.5f * p * e;  // 1 − Φ(|x|)
  const float lower = 1.0f - upper;
  return {select(is_positive(x), lower, upper), 0.39894228f * e};
}

/// The error function; float with an absolute error below 6e-7 that vectorises, double the library's.
SACCADE_INLINE double fast_erf(double x) { return std::erf(x); }
SACCADE_INLINE float fast_erf(float x) { return 2.0f * fast_normal(x * 1.41421356f).cdf - 1.0f; }

/// Σ term(i) over [0, n) in sixteen interleaved partial sums: vectorises, and the order depends on n only.
template <class T, class Term>
SACCADE_INLINE T lane_sum(int64_t n, Term term) {
  constexpr int kLanes = 16;
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lanes[l] += term(i + l);
  for (int l = 0; i < n; ++i, ++l) lanes[l] += term(i);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}

}  // namespace saccade
