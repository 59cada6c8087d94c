#include "kernels/engine/cuda_limits.h"

#include <algorithm>
#include <vector>

#ifdef SACCADE_CUDA
#include "kernels/cuda/runtime/check.h"
#endif
#include "kernels/engine/cuda_runtime.h"

namespace saccade::cuda {
namespace {

int64_t least_shared_memory() {
  int64_t least = 227 << 10;
#ifdef SACCADE_CUDA
  for (const Gpu& gpu : gpus()) {
    int bytes = 0;
    check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu.index));
    least = std::min<int64_t>(least, bytes);
  }
#endif
  return least;
}

int64_t fewest_multiprocessors() {
  std::vector<int64_t> counts;
  for (const Gpu& gpu : gpus()) counts.push_back(gpu.multiprocessors);
  return counts.empty() ? 132 : *std::min_element(counts.begin(), counts.end());
}

}  // namespace

int64_t shared_memory_per_block() {
  static const int64_t bytes = least_shared_memory();
  return bytes;
}

int64_t multiprocessors() {
  static const int64_t count = fewest_multiprocessors();
  return count;
}

}  // namespace saccade::cuda
