#include "kernels/cuda/fused_gemm.cuh"

#include <cudaTypedefs.h>

#include <map>

namespace saccade::cuda::fused {
namespace {

__global__ void probe_kernel(int* built) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  *built = 1;
#else
  *built = 0;
#endif
}

bool probe(int device) {
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  if (major != 9) return false;
  int *on_device = nullptr, built = 0;
  check(cudaMalloc(&on_device, sizeof built));
  probe_kernel<<<1, 1, 0, stream(device)>>>(on_device);
  check(cudaMemcpyAsync(&built, on_device, sizeof built, cudaMemcpyDeviceToHost, stream(device)));
  check(cudaStreamSynchronize(stream(device)));
  check(cudaFree(on_device));
  return built == 1;
}

PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
#else
  check(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry, cudaEnableDefault, &found));
#endif
  if (found != cudaDriverEntryPointSuccess) throw DeviceError("the driver has no cuTensorMapEncodeTiled");
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(entry);
}

}  // namespace

bool available(int device) {
  static std::map<int, bool> known;
  const auto found = known.find(device);
  return found != known.end() ? found->second : known[device] = probe(device);
}

CUtensorMap tensor_map(const Matrix& x, int64_t rows, int64_t columns, int box_rows) {
  static const auto encode = encoder();
  CUtensorMap map;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(x.row_stride) * sizeof(bf16)};
  const cuuint32_t box[] = {kDepth, static_cast<cuuint32_t>(box_rows)}, steps[] = {1, 1};
  const CUresult status = encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(x.data), sizes, strides, box, steps,
                                 CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS)
    throw DeviceError("cuTensorMapEncodeTiled: error " + std::to_string(static_cast<int>(status)) + " for " + std::to_string(rows) + " x " +
                      std::to_string(columns));
  return map;
}

}  // namespace saccade::cuda::fused
