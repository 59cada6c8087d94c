#include "kernels/engine/cuda_separate_memory.h"

#ifdef SACCADE_CUDA
#include <cuda_runtime.h>

#include <cstdlib>

#include "kernels/cuda/runtime/check.h"
#include "kernels/engine/cuda_runtime.h"

namespace saccade::cuda {

bool separate_memory() {
  static const bool wanted = std::getenv("SACCADE_SEPARATE_MEMORY") != nullptr;
  return wanted;
}

void* allocate_separately(int index, int64_t bytes) {
  void* data = nullptr;
  stream(index);  // makes the device current
  check(cudaMalloc(&data, static_cast<size_t>(bytes)));
  return data;
}

void free_separately(int index, void* data) {
  (void)cudaStreamSynchronize(stream(index));
  (void)cudaFree(data);
}

void count_as_written(Stream stream, void* data, int64_t rows, int64_t columns, int64_t row_stride, int64_t element_bytes) {
  if (!separate_memory()) return;
  const auto bytes = [&](int64_t n) { return static_cast<size_t>(n * element_bytes); };
  check(cudaMemset2DAsync(data, bytes(row_stride), 0, bytes(columns), static_cast<size_t>(rows), stream));
}

}  // namespace saccade::cuda
#endif
