// Host side of the Hopper kernels: where they apply, and how they see tensors.
#include <map>

#include "kernels/cuda/attention/attention_hopper.cuh"

namespace saccade::cuda::hopper {

bool covers(const AttentionTask& task, DType type) {
  return type == DType::bf16 && task.shape.width % 8 == 0 && task.shape.width <= kWidth && task.shape.length >= 2 * kOwnRows &&
         task.chunk == 0 && !task.lists.order && !task.options.alibi && task.options.scale > 0;
}

namespace {

/// One launch at a time uses them: all work of a device goes through one
/// stream.
unsigned* counters_of(Stream stream, int device) {
  static std::map<int, unsigned*> counters;
  unsigned*& c = counters[device];
  if (!c) {
    check(cudaMalloc(&c, 2 * sizeof *c));
    check(cudaMemsetAsync(c, 0, 2 * sizeof *c, stream));
  }
  return c;
}

}  // namespace

Items items_of(Stream stream, int device, const HeadShape& shape, int rows) {
  constexpr int64_t kCached = int64_t{16} << 20;  // bytes that a section reads again and again, well below these GPUs' L2 cache
  const int64_t batch_heads = shape.sequences(), blocks = (shape.length + rows - 1) / rows;
  const int64_t most = std::max<int64_t>(1, kCached / (2 * shape.length * kRowBytes)), sections = (batch_heads + most - 1) / most;
  return {static_cast<int>(batch_heads), static_cast<int>(blocks), static_cast<int>((batch_heads + sections - 1) / sections),
          counters_of(stream, device)};
}

CUtensorMap box_map(const Tensor& x, const HeadShape& shape, int rows) {
  const int64_t position = shape.stride() * 2, head = shape.width * 2;  // bytes
  return tensor_map(x.raw(), {shape.width, shape.heads, shape.length, x.dim(0)}, {head, position, position * shape.length},
                    {kWidth, 1, rows, 1});
}

}  // namespace saccade::cuda::hopper
