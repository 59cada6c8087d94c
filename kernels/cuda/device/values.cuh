#pragma once
/// Neighbouring values as floats, whatever their dtype in memory. Device code only.
#include <type_traits>

#include "kernels/cuda/device/device_code.cuh"
#include "kernels/engine/tape.h"

namespace saccade::cuda {

template <int N>
struct Values {
  float v[N] = {};
};

/// N neighbours, moved 16 bytes at a time (all at once when they are fewer).
template <int N, class T>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Piece {
  T v[N];
};

template <int N, class T>
__device__ __forceinline__ Piece<N, T> load_piece(const T* p) {
  return *reinterpret_cast<const Piece<N, T>*>(p);
}
template <int N, class T>
__device__ __forceinline__ Values<N> values_of(const Piece<N, T>& piece) {
  Values<N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.v[i] = to_float(piece.v[i]);
  return r;
}
template <int N, class T>
__device__ __forceinline__ Values<N> load_values(const T* p) {
  return values_of(load_piece<N>(p));
}

/// p (+)= x
template <int N, class T>
__device__ __forceinline__ void store_values(T* p, const Values<N>& x, bool add = false) {
  const Values<N> old = add ? load_values<N>(static_cast<const T*>(p)) : Values<N>();
  Piece<N, T> piece;
#pragma unroll
  for (int i = 0; i < N; ++i) piece.v[i] = from_float<T>(old.v[i] + x.v[i]);
  *reinterpret_cast<Piece<N, T>*>(p) = piece;
}

/// Target of a gradient; null where it is not wanted.
template <class T>
struct Goal {
  T* to = nullptr;
  bool add = false;

  __device__ __forceinline__ void put(int64_t at, float x) const {
    if (to) to[at] = from_float<T>(add ? to_float(to[at]) + x : x);
  }
  template <int N>
  __device__ __forceinline__ void put(int64_t at, const Values<N>& x) const {
    if (to) store_values(to + at, x, add);
  }
};

template <class T>
T* pointer_or_null(const Tensor& x) {
  return x ? pointer<T>(x) : nullptr;
}
template <class T>
Goal<T> goal(const GradTarget& target) {
  return {pointer_or_null<T>(target.tensor), target.add};
}

__device__ __forceinline__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
__device__ __forceinline__ float silu(float x) { return x * sigmoid(x); }
__device__ __forceinline__ float silu_slope(float x) {
  const float s = sigmoid(x);
  return s * (1.0f + x * (1.0f - s));
}

/// f(std::integral_constant<int, N>) where N divides `width`, else with 1.
template <int N, class F>
void in_pieces(int64_t width, F&& f) {
  if (width % N == 0)
    f(std::integral_constant<int, N>{});
  else
    f(std::integral_constant<int, 1>{});
}

}  // namespace saccade::cuda
