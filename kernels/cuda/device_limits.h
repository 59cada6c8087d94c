#pragma once
#include <cstdint>

namespace saccade::cuda {

/// Bytes of shared memory that a block may ask for on that GPU: 227 KiB at compute capability 9.0, 163 KiB at 8.0, 99 KiB on cards for
/// desktops. 0 in a build without CUDA. Throws DeviceError.
int64_t shared_memory_per_block(int index);

}  // namespace saccade::cuda
