#pragma once
#include <cuda_runtime.h>

#include <source_location>
#include <string>

#include "kernels/error.h"

namespace saccade::cuda {

/// Every CUDA call goes through this: a failure is a DeviceError that names the call's place and CUDA's words.
inline void check(cudaError_t status, std::source_location where = std::source_location::current()) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  throw DeviceError(std::string("CUDA: ") + cudaGetErrorString(status) + " (" + where.function_name() + ")");
}

/// After a kernel launch.
inline void check_launch(std::source_location where = std::source_location::current()) { check(cudaGetLastError(), where); }

}  // namespace saccade::cuda
