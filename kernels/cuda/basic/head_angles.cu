#include "kernels/cuda/basic/head_angles.h"

#include <bit>
#include <map>
#include <tuple>

#include "kernels/cuda/device/device_code.cuh"
#include "kernels/cuda/device/rotation.cuh"

namespace saccade::cuda {
namespace {

/// A thread per pair of a position. In double: positions reach 10^5.
__global__ void __launch_bounds__(256) angles_kernel(__half2* angles, int64_t count, int half, double log2_base) {
  const int64_t i = int64_t{blockIdx.x} * 256 + threadIdx.x;
  if (i >= count) return;
  const double revolutions =
      static_cast<double>(i / half) * exp2(-static_cast<double>(i % half) / half * log2_base) * 0.15915494309189533577;
  const float2 angle = cosine_and_sine(revolutions);
  angles[i] = __floats2half2_rn(angle.x, angle.y);
}

}  // namespace

const __half2* head_angles(Stream stream, int device, double rotary_base, int64_t width, int64_t length) {
  static std::map<std::tuple<int, double, int64_t, int64_t>, __half2*> tables;
  const auto positions = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length)));
  __half2*& table = tables[{device, rotary_base, width, positions}];
  if (!table) {
    const int64_t count = positions * width / 2;
    check(cudaMalloc(&table, static_cast<size_t>(count) * sizeof *table));
    angles_kernel<<<blocks_for(count, 256), 256, 0, stream>>>(table, count, static_cast<int>(width / 2), std::log2(rotary_base));
    check_launch();
    check(cudaStreamSynchronize(stream));
  }
  return table;
}

}  // namespace saccade::cuda
