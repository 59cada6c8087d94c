#include "kernels/ops/top1_element/top1_element_cuda.h"

#include "kernels/cuda/device/device_code.cuh"

namespace saccade::cuda {
namespace {

/// A warp per (sequence, position, head).
template <class T>
__global__ void gather_values_kernel(const T* v, const int32_t* selected, T* o, int64_t rows, int length, int heads, int width) {
  const int64_t row = int64_t{blockIdx.x} * 8 + threadIdx.x / 32;
  if (row >= rows) return;
  const int64_t b = row / heads / length, t = row / heads % length, h = row % heads;
  const T* from = v + ((b * length + selected[(b * heads + h) * length + t]) * heads + h) * width;
  for (int i = threadIdx.x % 32; i < width; i += 32) o[row * width + i] = from[i];
}

}  // namespace

void gather_values(Stream stream, const HeadShape& shape, const Tensor& v, const Tensor& selected, const Tensor& o) {
  const int64_t rows = shape.sequences() * shape.length;
  dispatch_cuda(v.dtype(), [&](auto t) {
    using T = decltype(t);
    gather_values_kernel<<<blocks_for(rows, 8), 256, 0, stream>>>(pointer<T>(v), pointer<int32_t>(selected), pointer<T>(o), rows,
                                                                  static_cast<int>(shape.length), static_cast<int>(shape.heads),
                                                                  static_cast<int>(shape.width));
  });
  check_launch();
}

}  // namespace saccade::cuda
