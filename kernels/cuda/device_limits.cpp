#include "kernels/cuda/device_limits.h"

#ifdef SACCADE_CUDA
#include "kernels/cuda/check.h"
#endif

namespace saccade::cuda {

#ifdef SACCADE_CUDA
int64_t shared_memory_per_block(int index) {
  int bytes = 0;
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, index));
  return bytes;
}
#else
int64_t shared_memory_per_block(int) { return 0; }
#endif

}  // namespace saccade::cuda
