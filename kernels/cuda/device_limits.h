#pragma once
#include <cstdint>

namespace saccade::cuda {

/// Bytes of shared memory that a block may ask for on every GPU of this machine: 227 KiB at compute capability 9.0, 163 KiB at 8.0,
/// 99 KiB on cards for desktops; that of 9.0 where there is none. The same for all of them, so that a plan, which belongs to no GPU
/// yet, takes the kernels that the run will take.
int64_t shared_memory_per_block();

/// Multiprocessors of the GPU that has the fewest, 132 where there is none; the same for all of them likewise.
int64_t multiprocessors();

}  // namespace saccade::cuda
