#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/device/device_code.cuh"
#include "kernels/ops/embedding/embedding_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void embedding_kernel(const float* table, const int32_t* tokens, T* y, int64_t elements, int width) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < elements) y[i] = from_float<T>(table[int64_t{tokens[i / width]} * width + i % width]);
}

/// A thread per piece of 16 bytes; a row holds whole ones.
template <class T>
__global__ void embedding_packed_kernel(const float* table, const int32_t* tokens, T* y, int64_t pieces, int pieces_a_row) {
  constexpr int V = kVector<T>;
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= pieces) return;
  const int64_t row = i / pieces_a_row, piece = i - row * pieces_a_row;
  const float* from = table + (int64_t{tokens[row]} * pieces_a_row + piece) * V;
  Pack<T> out;
#pragma unroll
  for (int v = 0; v < V; v += 4) {
    const Pack<float> x = load_pack(from + v);
#pragma unroll
    for (int j = 0; j < 4; ++j) out.v[v + j] = from_float<T>(x.v[j]);
  }
  store_pack(y + i * V, out);
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

/// Block (v, tile of 32 pieces of V columns), a lane per piece: warp w adds the positions w, w + kWarps, … of token v, the
/// warps' sums are added in order; few positions are all added by the first warp.
constexpr int kWarps = 4;
template <int V, class T>
__global__ void __launch_bounds__(32 * kWarps)
    gather_rows_kernel(const T* dy, const int32_t* positions, const int32_t* begin, float* d_table, bool add, int width) {
  __shared__ float parts[kWarps][V][32];
  const int v = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = (blockIdx.y * 32 + lane) * V;
  const int first = begin[v], last = begin[v + 1];
  const bool few = last - first <= kWarps, in = column < width;
  if ((few && warp > 0) || (add && first == last)) return;
  float sum[V] = {};
  if (in) {
#pragma unroll 4
    for (int i = first + warp; i < last; i += few ? 1 : kWarps) {
      const T* row = dy + int64_t{positions[i]} * width + column;
      if constexpr (V == 1) {
        sum[0] += to_float(*row);
      } else {
        const Pack<T> piece = load_pack(row);
#pragma unroll
        for (int j = 0; j < V; ++j) sum[j] += to_float(piece.v[j]);
      }
    }
  }
  if (!few) {
#pragma unroll
    for (int j = 0; j < V; ++j) parts[warp][j][lane] = sum[j];
    __syncthreads();
    if (warp > 0) return;
#pragma unroll
    for (int j = 0; j < V; ++j)
      for (int w = 1; w < kWarps; ++w) sum[j] += parts[w][j][lane];
  }
  if (!in) return;
  float* out = d_table + int64_t{v} * width + column;
  if constexpr (V == 1) {
    *out = add ? *out + sum[0] : sum[0];
  } else {
#pragma unroll
    for (int j = 0; j < V; j += 4) {
      Pack<float> piece{};
      if (add) piece = load_pack(out + j);
#pragma unroll
      for (int i = 0; i < 4; ++i) piece.v[i] += sum[j + i];
      store_pack(out + j, piece);
    }
  }
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

/// What lies where in the memory of order_by_token.
struct Order {
  int32_t *positions, *sorted_tokens, *sorted_positions, *begin;
  void* temporary;
  Order(const Tensor& memory, int64_t n, int64_t vocabulary)
      : positions(pointer<int32_t>(memory)),
        sorted_tokens(positions + round_up(n)),
        sorted_positions(sorted_tokens + round_up(n)),
        begin(sorted_positions + round_up(n)),
        temporary(begin + round_up(vocabulary + 1)) {}
};

}  // namespace

void embedding(Stream stream, const Tensor& table, const Tensor& tokens, const Tensor& y) {
  const int64_t width = table.dim(1);
  dispatch_cuda(y.dtype(), [&](auto t) {
    using T = decltype(t);
    if (width % kVector<T> == 0) {
      const int64_t pieces = y.size() / kVector<T>;
      embedding_packed_kernel<<<blocks_for(pieces, kThreads), kThreads, 0, stream>>>(
          pointer<float>(table), pointer<int32_t>(tokens), pointer<T>(y), pieces, static_cast<int>(width / kVector<T>));
      return;
    }
    embedding_kernel<<<blocks_for(y.size(), kThreads), kThreads, 0, stream>>>(
        pointer<float>(table), pointer<int32_t>(tokens), pointer<decltype(t)>(y), y.size(), static_cast<int>(table.dim(1)));
  });
  check_launch();
}

void order_by_token(Stream stream, const Tensor& tokens, int64_t vocabulary, const Tensor& order) {
  const int n = static_cast<int>(tokens.size());
  const Order at(order, n, vocabulary);
  size_t bytes = sort_bytes(n, vocabulary);
  const int64_t left = order.bytes() - (static_cast<char*>(at.temporary) - static_cast<char*>(order.raw()));
  if (static_cast<int64_t>(bytes) > left)
    throw DeviceError("[embedding] sorting needs " + std::to_string(bytes) + " bytes, scratch has " + std::to_string(left));
  positions_kernel<<<blocks_for(n, kThreads), kThreads, 0, stream>>>(at.positions, n);
  check(cub::DeviceRadixSort::SortPairs(at.temporary, bytes, pointer<int32_t>(tokens), at.sorted_tokens, at.positions, at.sorted_positions,
                                        n, 0, bits_for(vocabulary), stream));
  starts_kernel<<<blocks_for(n + 1, kThreads), kThreads, 0, stream>>>(at.sorted_tokens, at.begin, n, static_cast<int>(vocabulary));
  check_launch();
}

void embedding_backward(Stream stream, const Tensor& dy, const Tensor& order, const Tensor& d_table, bool add) {
  const int64_t vocabulary = d_table.dim(0);
  const int width = static_cast<int>(d_table.dim(1));
  const Order at(order, dy.size() / width, vocabulary);
  dispatch_cuda(dy.dtype(), [&](auto t) {
    using T = decltype(t);
    const auto gather = [&](auto columns) {
      constexpr int V = decltype(columns)::value;
      const dim3 grid(static_cast<unsigned>(vocabulary), blocks_for(width, 32 * V));
      gather_rows_kernel<V>
          <<<grid, 32 * kWarps, 0, stream>>>(pointer<T>(dy), at.sorted_positions, at.begin, pointer<float>(d_table), add, width);
    };
    if (width % kVector<T> == 0)
      gather(std::integral_constant<int, kVector<T>>{});
    else
      gather(std::integral_constant<int, 1>{});
  });
  check_launch();
}

}  // namespace saccade::cuda
