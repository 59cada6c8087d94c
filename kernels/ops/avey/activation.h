#pragma once
#include <type_traits>

#include "kernels/cpu/simd.h"
#include "kernels/ops/elementwise/elementwise.h"

namespace saccade::avey {

/// Calls f with the activation as a compile-time constant, so that the loop around it vectorises.
template <class F>
SACCADE_INLINE void with_activation(Activation a, F&& f) {
  switch (a) {
    case Activation::none: return f(std::integral_constant<Activation, Activation::none>{});
    case Activation::gelu: return f(std::integral_constant<Activation, Activation::gelu>{});
    case Activation::relu: return f(std::integral_constant<Activation, Activation::relu>{});
    case Activation::relu2: return f(std::integral_constant<Activation, Activation::relu2>{});
    case Activation::silu: return f(std::integral_constant<Activation, Activation::silu>{});
    case Activation::sigmoid: return f(std::integral_constant<Activation, Activation::sigmoid>{});
    case Activation::tanh: return f(std::integral_constant<Activation, Activation::tanh>{});
  }
}

template <Activation A, class T>
SACCADE_INLINE T activation_value(T x) {
  if constexpr (A == Activation::gelu) return x * fast_normal(x).cdf;
  if constexpr (A == Activation::relu) return x > 0 ? x : T(0);
  if constexpr (A == Activation::relu2) return x > 0 ? x * x : T(0);
  if constexpr (A == Activation::silu) return x / (1 + fast_exp(-x));
  if constexpr (A == Activation::sigmoid) return 1 / (1 + fast_exp(-x));
  if constexpr (A == Activation::tanh) return 1 - 2 / (1 + fast_exp(2 * x));
  return x;
}

template <Activation A, class T>
SACCADE_INLINE T activation_slope(T x) {
  if constexpr (A == Activation::gelu) {
    const auto normal = fast_normal(x);
    return normal.cdf + x * normal.pdf;
  }
  if constexpr (A == Activation::relu) return x > 0 ? T(1) : T(0);
  if constexpr (A == Activation::relu2) return x > 0 ? 2 * x : T(0);
  if constexpr (A == Activation::silu) {
    const T s = 1 / (1 + fast_exp(-x));
    return s * (1 + x * (1 - s));
  }
  if constexpr (A == Activation::sigmoid || A == Activation::tanh) {
    const T y = activation_value<A>(x);
    return A == Activation::sigmoid ? y * (1 - y) : 1 - y * y;
  }
  return T(1);
}

/// √y for y >= 0. Float: from the reciprocal root by Newton's steps, to 2e-7, since loops with the library's root (which may
/// set errno) do not vectorise.
SACCADE_INLINE double fast_sqrt(double y) { return std::sqrt(y); }
SACCADE_INLINE float fast_sqrt(float y) {
  float r = std::bit_cast<float>(0x5f375a86 - (std::bit_cast<int32_t>(y) >> 1));
  r *= 1.5f - 0.5f * y * r * r;
  r *= 1.5f - 0.5f * y * r * r;
  r *= 1.5f - 0.5f * y * r * r;
  return y * r;
}

/// Whether the slope can be told from the value alone, so that the input need not be kept.
constexpr bool slope_from_value(Activation a) { return a == Activation::none || a == Activation::relu || a == Activation::relu2; }

template <Activation A, class T>
SACCADE_INLINE T activation_slope_from_value(T y) {
  if constexpr (A == Activation::relu) return y > 0 ? T(1) : T(0);
  if constexpr (A == Activation::relu2) return 2 * fast_sqrt(y);
  return T(1);
}

}  // namespace saccade::avey
