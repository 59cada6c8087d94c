#pragma once
#include <cstdint>

#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/tensor.h"

namespace saccade::cuda {

/// For compute-sanitizer: with SACCADE_SEPARATE_MEMORY set, every tensor on a GPU has an allocation of exactly its size, so that the
/// tool sees accesses out of bounds, after free and before the first write. Slow; never with captured graphs.
bool separate_memory();
void* allocate_separately(int index, int64_t bytes);
void free_separately(int index, void* data);
/// initcheck does not see stores by TMA: with separate memory, marks rows × columns elements as written from here on.
void count_as_written(Stream stream, void* data, int64_t rows, int64_t columns, int64_t row_stride, int64_t element_bytes);
inline void count_as_written(Stream stream, const Tensor& x) {
  count_as_written(stream, x.raw(), 1, x.size(), x.size(), byte_size(x.dtype()));
}

}  // namespace saccade::cuda
