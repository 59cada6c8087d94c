#pragma once
/// Kernels that begin while the one in front of them on the stream still runs (programmatic dependent launch), on Hopper: a grid begins
/// once all blocks of the one before have let it, or have ended. Until it awaits that grid it may read only what that one, and any that has
/// let others begin, do not write, and it writes nothing. Device code only.
#include <utility>

#include "kernels/cuda/device/device_code.cuh"
#include "kernels/cuda/device/hopper.h"

namespace saccade::cuda {

/// Waits until the grid before has ended and what it wrote is seen. Every block does so, since grids end in their order by that alone.
__device__ __forceinline__ void await_grid_before() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// From here on the next grid may begin, as far as this block is concerned.
__device__ __forceinline__ void let_next_grid_begin() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

struct DependentLaunch {
  dim3 grid;
  unsigned threads;
  size_t shared = 0;
  unsigned cluster = 1;  ///< blocks along x
};

/// Launches a kernel that awaits the grid before; on other GPUs an ordinary launch, one grid after the other.
template <class... Parameters, class... Args>
void launch_dependent(int device, const DependentLaunch& launch, void (*kernel)(Parameters...), Args&&... args) {
  cudaLaunchAttribute attributes[2]{};
  cudaLaunchConfig_t config{};
  config.gridDim = launch.grid, config.blockDim = dim3(launch.threads), config.dynamicSmemBytes = launch.shared;
  config.stream = stream(device), config.attrs = attributes;
  if (hopper::available(device)) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (launch.cluster > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs].val.clusterDim.x = launch.cluster;
    attributes[config.numAttrs].val.clusterDim.y = attributes[config.numAttrs].val.clusterDim.z = 1;
    ++config.numAttrs;
  }
  check(cudaLaunchKernelEx(&config, kernel, Parameters(std::forward<Args>(args))...));
}

}  // namespace saccade::cuda
