#pragma once
/// Where a kernel puts a gradient element by element. Device code only.
#include "kernels/cuda/device_code.cuh"
#include "kernels/tape.h"

namespace saccade::cuda {

/// A pointer of T, null for an empty tensor.
template <class T>
T* maybe(const Tensor& x) {
  return x ? pointer<T>(x) : nullptr;
}

/// Writes or adds as GradTarget says; nothing where no gradient is wanted.
template <class T>
struct Target {
  T* at = nullptr;
  bool add = false;

  __device__ void put(int64_t element, float value) const {
    if (at) at[element] = from_float<T>(add ? to_float(at[element]) + value : value);
  }
};
template <class T>
Target<T> target_of(const GradTarget& target) {
  return {maybe<T>(target.tensor), target.add};
}

}  // namespace saccade::cuda
