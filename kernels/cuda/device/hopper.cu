#include "kernels/cuda/device/hopper.h"

#include <cudaTypedefs.h>

#include <algorithm>
#include <array>
#include <string>

#include "kernels/cuda/runtime/check.h"
#include "kernels/engine/error.h"
#include "kernels/engine/plain.h"

namespace saccade::cuda::hopper {
namespace {

/// Asks for shared memory only where the Hopper kernels are built; never launched.
__global__ void probe_kernel(int* built) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  __shared__ volatile int used;
  used = *built;
  *built = used + 1;
#else
  *built = 0;
#endif
}

PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
#else
  check(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry, cudaEnableDefault, &found));
#endif
  if (found != cudaDriverEntryPointSuccess) throw DeviceError("CUDA: the driver has no cuTensorMapEncodeTiled");
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(entry);
}

}  // namespace

bool available(int device) {
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, probe_kernel));
  return !plain_kernels() && major == 9 && attributes.sharedSizeBytes > 0;
}

unsigned persistent_blocks(int device, int64_t items) {
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  return static_cast<unsigned>(std::min<int64_t>(items, multiprocessors));
}

CUtensorMap tensor_map(const void* values, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                       const std::vector<int64_t>& box) {
  constexpr size_t kMostAxes = 5;
  static const auto encode = encoder();
  std::array<cuuint64_t, kMostAxes> size{}, stride{};
  std::array<cuuint32_t, kMostAxes> extent{}, step{};
  std::copy(sizes.begin(), sizes.end(), size.begin());
  std::copy(strides.begin(), strides.end(), stride.begin());
  std::copy(box.begin(), box.end(), extent.begin());
  step.fill(1);
  CUtensorMap map;
  const CUresult status = encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, static_cast<cuuint32_t>(sizes.size()), const_cast<void*>(values),
                                 size.data(), stride.data(), extent.data(), step.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
                                 CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status == CUDA_SUCCESS) return map;
  std::string shape;
  for (auto n = sizes.rbegin(); n != sizes.rend(); ++n) shape += (shape.empty() ? "" : " x ") + std::to_string(*n);
  throw DeviceError("CUDA: describing a tensor " + shape + " for TMA failed with driver error " + std::to_string(status));
}

}  // namespace saccade::cuda::hopper
