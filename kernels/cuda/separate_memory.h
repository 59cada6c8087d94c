#pragma once
#include <cstdint>

namespace saccade::cuda {

/// For compute-sanitizer: with SACCADE_SEPARATE_MEMORY set, every tensor on a GPU has an allocation of its own and of its own
/// size, so that reading or writing beside it, after its end or before it was written shows. Slow; never with recorded steps.
bool separate_memory();
void* allocate_separately(int index, int64_t bytes);
void free_separately(int index, void* data);

}  // namespace saccade::cuda
