#include "kernels/cuda/wkv/wkv.cuh"

namespace saccade::cuda::wkv5 {
namespace {

constexpr int kThreads = 1024;

/// A block owns a head; its threads take channels and slices of the rows, the slices added in order.
__global__ void __launch_bounds__(kThreads)
    sum_parts_kernel(const float* parts, int batch, int heads, int chunks, int width, int slices, Goal<float> to) {
  __shared__ float sums[kThreads];
  const int c = static_cast<int>(threadIdx.x) % width, slice = static_cast<int>(threadIdx.x) / width, head = static_cast<int>(blockIdx.x);
  float sum = 0;
#pragma unroll 8
  for (int i = slice; i < batch * chunks; i += slices)
    sum += parts[((int64_t{i / chunks} * heads + head) * chunks + i % chunks) * width + c];
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (slice > 0) return;
  for (int i = 1; i < slices; ++i) sum += sums[i * width + c];
  to.put(head * width + c, sum);
}

}  // namespace

void sum_parts(Stream stream, const cpu::WkvInputs& in, const Tensor& parts, const GradTarget& to) {
  if (!parts || !to) return;
  const int batch = static_cast<int>(in.shape.batch), heads = static_cast<int>(in.shape.heads), width = static_cast<int>(in.shape.width);
  const int chunks = static_cast<int>(parts.size() / to.tensor.size()) / batch, slices = std::min(16, kThreads / width);
  sum_parts_kernel<<<static_cast<unsigned>(heads), static_cast<unsigned>(slices * width), 0, stream>>>(
      pointer<float>(parts), batch, heads, chunks, width, slices, goal<float>(to));
  check_launch();
}

}  // namespace saccade::cuda::wkv5
