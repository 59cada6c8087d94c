#pragma once
/// Arrays whose dtype, f32 or bf16, is known at run time only. Device code only.
#include "kernels/cuda/device/device_code.cuh"
#include "kernels/engine/tape.h"

namespace saccade::cuda {

struct Elements {
  void* data = nullptr;
  bool in_bf16 = false;

  __host__ __device__ explicit operator bool() const { return data != nullptr; }
  __device__ __forceinline__ float operator[](int64_t i) const {
    return in_bf16 ? to_float(static_cast<const bf16*>(data)[i]) : static_cast<const float*>(data)[i];
  }
  __device__ __forceinline__ void set(int64_t i, float x) const {
    if (in_bf16)
      static_cast<bf16*>(data)[i] = from_float<bf16>(x);
    else
      static_cast<float*>(data)[i] = x;
  }
};
inline Elements elements(const Tensor& x) { return x ? Elements{x.raw(), x.dtype() == DType::bf16} : Elements{}; }

/// Target of a gradient; null where it is not wanted.
struct ElementsTarget {
  Elements to;
  bool add = false;

  __device__ __forceinline__ void put(int64_t i, float x) const {
    if (to) to.set(i, add ? to[i] + x : x);
  }
};
inline ElementsTarget elements(const GradTarget& target) { return {elements(target.tensor), target.add}; }

}  // namespace saccade::cuda
