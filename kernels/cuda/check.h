#pragma once
#include <cuda_runtime.h>

#include <string>

#include "kernels/error.h"

namespace saccade::cuda {

/// Every CUDA call goes through this: a failure is a DeviceError that names the calling function and CUDA's words.
inline void check(cudaError_t status, const char* caller = __builtin_FUNCTION()) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  throw DeviceError(std::string("CUDA: ") + cudaGetErrorString(status) + " (" + caller + ")");
}

/// After a kernel launch.
inline void check_launch(const char* caller = __builtin_FUNCTION()) { check(cudaGetLastError(), caller); }

}  // namespace saccade::cuda
