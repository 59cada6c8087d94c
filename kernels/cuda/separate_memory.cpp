#include "kernels/cuda/separate_memory.h"

#ifdef SACCADE_CUDA
#include <cuda_runtime.h>

#include <cstdlib>

#include "kernels/cuda/check.h"
#include "kernels/cuda/runtime.h"

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

}  // namespace saccade::cuda
#endif
