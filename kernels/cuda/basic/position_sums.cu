#include "kernels/cuda/device/device_code.cuh"
#include "kernels/ops/position_sums/position_sums_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 128;

/// A thread owns a position.
__global__ void add_position_sums_kernel(const float* x, double* sums, int64_t sequences, int64_t length) {
  const int64_t t = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (t >= length) return;
  double sum = sums[t];
  for (int64_t s = 0; s < sequences; ++s) sum += static_cast<double>(x[s * length + t]);
  sums[t] = sum;
}

}  // namespace

void add_position_sums(Stream stream, const Tensor& x, const Tensor& sums) {
  const int64_t length = sums.size();
  add_position_sums_kernel<<<blocks_for(length, kThreads), kThreads, 0, stream>>>(pointer<float>(x), pointer<double>(sums),
                                                                                  x.size() / length, length);
  check_launch();
}

}  // namespace saccade::cuda
