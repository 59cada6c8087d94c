#pragma once
#include <cstdint>

namespace saccade::cuda {

/// Bytes of shared memory that a block may ask for on every GPU of this machine: 227 KiB at compute capability 9.0, 163 KiB at 8.0,
/// 99 KiB on desktop cards; that of 9.0 where there is no GPU. The least of all GPUs, so that a plan, which belongs to no GPU yet, chooses
/// the kernels that the run will use.
int64_t shared_memory_per_block();

/// Multiprocessors of the GPU that has the fewest, for the same reason; 132 where there is no GPU.
int64_t multiprocessors();

}  // namespace saccade::cuda
