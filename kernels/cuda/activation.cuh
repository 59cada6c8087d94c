#pragma once
/// Activation functions as device code.
#include "kernels/cuda/device_code.cuh"
#include "kernels/elementwise.h"

namespace saccade::cuda {

template <Activation kF>
__device__ __forceinline__ float value(float x) {
  if constexpr (kF == Activation::gelu) return 0.5f * x * (1.0f + erff(x * 0.70710678f));
  if constexpr (kF == Activation::relu) return fmaxf(x, 0.0f);
  if constexpr (kF == Activation::relu2) return fmaxf(x, 0.0f) * fmaxf(x, 0.0f);
  if constexpr (kF == Activation::silu) return x / (1.0f + __expf(-x));
  if constexpr (kF == Activation::sigmoid) return 1.0f / (1.0f + __expf(-x));
  if constexpr (kF == Activation::tanh) return tanhf(x);
  return x;
}
template <Activation kF>
__device__ __forceinline__ float slope(float x) {
  if constexpr (kF == Activation::gelu) return 0.5f * (1.0f + erff(x * 0.70710678f)) + x * 0.39894228f * __expf(-0.5f * x * x);
  if constexpr (kF == Activation::relu) return x > 0 ? 1.0f : 0.0f;
  if constexpr (kF == Activation::relu2) return 2.0f * fmaxf(x, 0.0f);
  if constexpr (kF == Activation::silu) {
    const float s = 1.0f / (1.0f + __expf(-x));
    return s * (1.0f + x * (1.0f - s));
  }
  if constexpr (kF == Activation::sigmoid || kF == Activation::tanh) {
    const float y = value<kF>(x);
    return kF == Activation::sigmoid ? y * (1.0f - y) : 1.0f - y * y;
  }
  return 1.0f;
}

template <class F>
void with_activation(Activation f, F&& use) {
  switch (f) {
    case Activation::none: return use(std::integral_constant<Activation, Activation::none>{});
    case Activation::gelu: return use(std::integral_constant<Activation, Activation::gelu>{});
    case Activation::relu: return use(std::integral_constant<Activation, Activation::relu>{});
    case Activation::relu2: return use(std::integral_constant<Activation, Activation::relu2>{});
    case Activation::silu: return use(std::integral_constant<Activation, Activation::silu>{});
    case Activation::sigmoid: return use(std::integral_constant<Activation, Activation::sigmoid>{});
    case Activation::tanh: return use(std::integral_constant<Activation, Activation::tanh>{});
  }
}

/// f' from f(x), for those functions where that is enough.
template <Activation kF>
__device__ __forceinline__ float slope_of_value(float y) {
  if constexpr (kF == Activation::relu) return y > 0 ? 1.0f : 0.0f;
  if constexpr (kF == Activation::relu2) return 2.0f * sqrtf(y);
  return 1.0f;
}

}  // namespace saccade::cuda
