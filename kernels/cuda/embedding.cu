#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/device_code.cuh"
#include "kernels/cuda/embedding.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void embedding_kernel(const float* table, const int32_t* tokens, T* y, int64_t elements, int width) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < elements) y[i] = from_float<T>(table[int64_t{tokens[i / width]} * width + i % width]);
}

__global__ void positions_kernel(int32_t* positions, int n) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i < n) positions[i] = i;
}

/// begin[v] = first place of token v among the sorted tokens; begin[V] = n.
__global__ void starts_kernel(const int32_t* sorted, int32_t* begin, int n, int vocabulary) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i > n) return;
  const int low = i == 0 ? -1 : sorted[i - 1], high = i == n ? vocabulary : sorted[i];
  for (int v = low + 1; v <= high; ++v) begin[v] = i;
}

/// Block (v, tile of 32 columns): warp w adds the positions w, w + kWarps, … of token v; the warps' sums are added in order.
constexpr int kWarps = 8;
template <class T>
__global__ void __launch_bounds__(32 * kWarps)
    gather_rows_kernel(const T* dy, const int32_t* positions, const int32_t* begin, float* d_table, bool add, int width) {
  __shared__ float parts[kWarps][32];
  const int v = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = blockIdx.y * 32 + lane;
  const int first = begin[v], last = begin[v + 1];
  float sum = 0;
  if (column < width) {
#pragma unroll 4
    for (int i = first + warp; i < last; i += kWarps) sum += to_float(dy[int64_t{positions[i]} * width + column]);
  }
  parts[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || column >= width) return;
  sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) sum += parts[w][lane];
  float& out = d_table[int64_t{v} * width + column];
  out = add ? out + sum : sum;
}

int bits_for(int64_t vocabulary) {
  int bits = 1;
  while ((int64_t{1} << bits) < vocabulary) ++bits;
  return bits;
}

size_t sort_bytes(int64_t tokens, int64_t vocabulary) {
  size_t bytes = 0;
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, static_cast<int32_t*>(nullptr), static_cast<int32_t*>(nullptr),
                                        static_cast<int32_t*>(nullptr), static_cast<int32_t*>(nullptr), static_cast<int>(tokens), 0,
                                        bits_for(vocabulary)));
  return bytes;
}

int64_t round_up(int64_t n) { return (n + 63) / 64 * 64; }

}  // namespace

void embedding(Stream stream, const Tensor& table, const Tensor& tokens, const Tensor& y) {
  dispatch_cuda(y.dtype(), [&](auto t) {
    embedding_kernel<<<blocks_for(y.size(), kThreads), kThreads, 0, stream>>>(
        pointer<float>(table), pointer<int32_t>(tokens), pointer<decltype(t)>(y), y.size(), static_cast<int>(table.dim(1)));
  });
  check_launch();
}

void embedding_backward(Stream stream, const Tensor& dy, const Tensor& tokens, const Tensor& d_table, bool add, const Tensor& scratch) {
  const int n = static_cast<int>(tokens.size()), vocabulary = static_cast<int>(d_table.dim(0)), width = static_cast<int>(d_table.dim(1));
  int32_t* positions = pointer<int32_t>(scratch);
  int32_t* sorted_tokens = positions + round_up(n);
  int32_t* sorted_positions = sorted_tokens + round_up(n);
  int32_t* begin = sorted_positions + round_up(n);
  void* temporary = begin + round_up(vocabulary + 1);
  size_t bytes = sort_bytes(n, vocabulary);
  const int64_t left = scratch.bytes() - (static_cast<char*>(temporary) - static_cast<char*>(scratch.raw()));
  if (static_cast<int64_t>(bytes) > left)
    throw DeviceError("[embedding] sorting needs " + std::to_string(bytes) + " bytes, scratch has " + std::to_string(left));
  positions_kernel<<<blocks_for(n, kThreads), kThreads, 0, stream>>>(positions, n);
  check(cub::DeviceRadixSort::SortPairs(temporary, bytes, pointer<int32_t>(tokens), sorted_tokens, positions, sorted_positions, n, 0,
                                        bits_for(vocabulary), stream));
  starts_kernel<<<blocks_for(n + 1, kThreads), kThreads, 0, stream>>>(sorted_tokens, begin, n, vocabulary);
  dispatch_cuda(dy.dtype(), [&](auto t) {
    const dim3 grid(static_cast<unsigned>(vocabulary), blocks_for(width, 32));
    gather_rows_kernel<<<grid, 32 * kWarps, 0, stream>>>(pointer<decltype(t)>(dy), sorted_positions, begin, pointer<float>(d_table), add,
                                                         width);
  });
  check_launch();
}

}  // namespace saccade::cuda
