#pragma once
#include <cuda_runtime.h>

#include <string>

#include "kernels/engine/error.h"

namespace saccade::cuda {

/// Checks a CUDA call: a failure throws DeviceError with the calling function and CUDA's error text.
inline void check(cudaError_t status, const char* caller = __builtin_FUNCTION()) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  throw DeviceError(std::string("CUDA: ") + cudaGetErrorString(status) + " (" + caller + ")");
}

/// After a kernel launch.
inline void check_launch(const char* caller = __builtin_FUNCTION()) { check(cudaGetLastError(), caller); }

}  // namespace saccade::cuda
