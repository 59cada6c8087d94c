// Host side of the Hopper kernels: where they apply, and how they see tensors.
#include "kernels/cuda/attention_hopper.cuh"

namespace saccade::cuda::hopper {

bool available(int device) {
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  return major == 9;
}

bool covers(const AttentionTask& task, DType type) {
  return type == DType::bf16 && task.shape.width % 8 == 0 && task.shape.width <= kWidth && task.shape.length >= 2 * kOwnRows &&
         task.chunk == 0 && !task.lists.order && !task.options.alibi && task.options.scale > 0;
}

unsigned persistent_blocks(int device, int64_t items) {
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  return static_cast<unsigned>(std::min<int64_t>(items, multiprocessors));
}

CUtensorMap box_map(const Tensor& x, const HeadShape& shape, int rows) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess) throw DeviceError("CUDA: the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const auto number = [](int64_t n) { return static_cast<cuuint64_t>(n); };
  const int64_t position = shape.stride() * 2, head = shape.width * 2;  // bytes
  const cuuint64_t dims[] = {number(shape.width), number(shape.heads), number(shape.length), number(x.dim(0))};
  const cuuint64_t strides[] = {number(head), number(position), number(position * shape.length)};
  const cuuint32_t box[] = {kWidth, 1, static_cast<cuuint32_t>(rows), 1}, steps[] = {1, 1, 1, 1};
  CUtensorMap map;
  const CUresult status =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, x.raw(), dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) throw DeviceError("CUDA: describing a tensor failed with driver error " + std::to_string(status));
  return map;
}

}  // namespace saccade::cuda::hopper
