#pragma once
/// Activation functions as device code.
#include "kernels/cuda/device/device_code.cuh"
#include "kernels/ops/elementwise/elementwise.h"

namespace saccade::cuda {

/// 1 / x and 2^x with a relative error of about 2e-7; results below the normal numbers are zero.
__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Standard normal distribution function at x and exp(−x²/2), by Abramowitz and Stegun 26.2.17 (absolute error below 1e-7):
/// one reciprocal and one exponential, where erff takes several times the instructions of a memory-bound kernel.
struct Normal {
  float cdf, bell;
};
__device__ __forceinline__ Normal normal(float x) {
  const float t = reciprocal(fmaf(0.2316419f, fabsf(x), 1.0f)), bell = power_of_two(-0.5f * x * x * 1.4426950408889634f);
  const float tail =
      bell * t * fmaf(t, fmaf(t, fmaf(t, fmaf(t, 0.5307027145f, -0.7265760135f), 0.7107068705f), -0.142248368f), 0.127414796f);
  return {x < 0 ? tail : 1.0f - tail, bell};
}

template <Activation kF>
__device__ __forceinline__ float value(float x) {
  if constexpr (kF == Activation::gelu) return x * normal(x).cdf;
  if constexpr (kF == Activation::relu) return fmaxf(x, 0.0f);
  if constexpr (kF == Activation::relu2) return fmaxf(x, 0.0f) * fmaxf(x, 0.0f);
  if constexpr (kF == Activation::silu) return x / (1.0f + __expf(-x));
  if constexpr (kF == Activation::sigmoid) return 1.0f / (1.0f + __expf(-x));
  if constexpr (kF == Activation::tanh) return tanhf(x);
  return x;
}
template <Activation kF>
__device__ __forceinline__ float slope(float x) {
  if constexpr (kF == Activation::gelu) {
    const Normal n = normal(x);
    return n.cdf + x * 0.39894228f * n.bell;
  }
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

/// f(x) and f'(x) together.
struct Point {
  float value, slope;
};
template <Activation kF>
__device__ __forceinline__ Point point(float x) {
  if constexpr (kF == Activation::gelu) {
    const Normal n = normal(x);
    return {x * n.cdf, n.cdf + x * 0.39894228f * n.bell};
  }
  return {value<kF>(x), slope<kF>(x)};
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

/// √x with a relative error of 2e-7.
__device__ __forceinline__ float root(float x) {
  float y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// f' from f(x), for the functions where f(x) determines it.
template <Activation kF>
__device__ __forceinline__ float slope_of_value(float y) {
  if constexpr (kF == Activation::relu) return y > 0 ? 1.0f : 0.0f;
  if constexpr (kF == Activation::relu2) return 2.0f * root(y);
  return 1.0f;
}

/// The same for a function chosen at run time: none, relu or relu2. Without branches, which would cost more than the rest.
__device__ __forceinline__ float slope_of_kept(Activation f, float y) {
  float slope;
  asm("{\n.reg .pred positive, step, none;\n.reg .f32 root, one;\n"
      "sqrt.approx.f32 root, %1;\nadd.f32 root, root, root;\n"
      "setp.gt.f32 positive, %1, 0f00000000;\nselp.f32 one, 0f3f800000, 0f00000000, positive;\n"
      "setp.ne.s32 step, %2, 0;\nselp.f32 one, one, root, step;\n"
      "setp.ne.s32 none, %3, 0;\nselp.f32 %0, 0f3f800000, one, none;\n}\n"
      : "=f"(slope)
      : "f"(y), "r"(static_cast<int>(f == Activation::relu)), "r"(static_cast<int>(f == Activation::none)));
  return slope;
}

/// f'(x) / f(x) from y = f(x) for relu and relu2, zero where y is; 1 for none.
template <Activation kF>
__device__ __forceinline__ float slope_over_value(float y) {
  if constexpr (kF == Activation::none) return 1.0f;
  float root;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(y));
  return y < 1.17549435e-38f ? 0.0f : kF == Activation::relu ? root * root : 2.0f * root;
}
__device__ __forceinline__ float slope_over_kept(Activation f, float y) {
  if (f == Activation::none) return 1.0f;
  return f == Activation::relu ? slope_over_value<Activation::relu>(y) : slope_over_value<Activation::relu2>(y);
}

/// use(f as a constant) for those functions.
template <class Use>
void with_slope(Activation f, Use&& use) {
  if (f == Activation::relu2) return use(std::integral_constant<Activation, Activation::relu2>{});
  if (f == Activation::relu) return use(std::integral_constant<Activation, Activation::relu>{});
  use(std::integral_constant<Activation, Activation::none>{});
}

}  // namespace saccade::cuda
