#pragma once
/// CPU side of the Hopper kernels: which GPUs run them, and TMA descriptors of tensors.
#include <cuda.h>

#include <cstdint>
#include <vector>

namespace saccade::cuda::hopper {

/// Whether they run on `device`: compute capability 9, and the program holds code for sm_90a. Code for older GPUs, or for plain sm_90, runs
/// there too, but its Hopper kernels are empty.
bool available(int device);

/// Number of persistent blocks, one per multiprocessor, at most `items`.
unsigned persistent_blocks(int device, int64_t items);

/// TMA descriptor of a bf16 tensor in boxes: sizes and box innermost first, `strides` in bytes of every axis but the innermost. Boxes lie
/// in shared memory in 128-byte swizzle; elements outside of the tensor read as zero. Throws DeviceError where the driver refuses (address
/// or stride no multiple of 16).
CUtensorMap tensor_map(const void* values, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                       const std::vector<int64_t>& box);

}  // namespace saccade::cuda::hopper
