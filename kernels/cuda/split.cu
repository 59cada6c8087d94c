#include <string>

#include "kernels/cuda/split.h"
#include "kernels/cuda/values.cuh"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256, kMostPieces = 8;

template <class T>
struct Pieces {
  T* data[kMostPieces];  ///< null: zeros
  int width[kMostPieces], count, total;

  Pieces(const std::vector<Tensor>& tensors, const std::vector<int64_t>& widths) : data{}, width{}, count(0), total(0) {
    if (widths.size() > kMostPieces) throw DeviceError("[split] the CUDA engine does not cut " + std::to_string(widths.size()) + " pieces");
    for (int64_t w : widths) {
      data[count] = pointer_or_null<T>(tensors[static_cast<size_t>(count)]);
      width[count++] = static_cast<int>(w);
      total += static_cast<int>(w);
    }
  }
  /// Where element i of x stands, null for a piece of zeros.
  __device__ T* at(int64_t i) const {
    const int64_t row = i / total;
    int column = static_cast<int>(i - row * total);
#pragma unroll
    for (int p = 0; p < kMostPieces; ++p) {
      if (p >= count) break;
      if (column < width[p]) return data[p] ? data[p] + row * width[p] + column : nullptr;
      column -= width[p];
    }
    return nullptr;
  }
};

template <int N, class T>
__global__ void __launch_bounds__(kThreads) split_kernel(const T* x, Pieces<T> y, int64_t size) {
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * N;
  if (i < size) store_values(y.at(i), load_values<N>(x + i));
}

template <int N, class T>
__global__ void __launch_bounds__(kThreads) split_backward_kernel(Pieces<T> dy, Goal<T> dx, int64_t size) {
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * N;
  if (i >= size) return;
  const T* from = dy.at(i);
  dx.put(i, from ? load_values<N>(from) : Values<N>());
}

/// f(std::integral_constant<int, N>) with pieces that lie within every width.
template <class T, class F>
void in_pieces_of(const std::vector<int64_t>& widths, F&& f) {
  bool whole = true;
  for (int64_t w : widths) whole = whole && w % kVector<T> == 0;
  in_pieces<kVector<T>>(whole ? 0 : 1, f);
}

}  // namespace

void split(Stream stream, const Tensor& x, const std::vector<Tensor>& y) {
  std::vector<int64_t> widths;
  for (const Tensor& piece : y) widths.push_back(piece.dim(-1));
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const Pieces<T> pieces(y, widths);
    in_pieces_of<T>(widths, [&](auto n) {
      constexpr int N = decltype(n)::value;
      split_kernel<N><<<blocks_for(x.size(), kThreads * N), kThreads, 0, stream>>>(pointer<T>(x), pieces, x.size());
    });
  });
  check_launch();
}

void split_backward(Stream stream, const std::vector<Tensor>& dy, const std::vector<int64_t>& widths, const GradTarget& dx) {
  const int64_t size = dx.tensor.size();
  dispatch_cuda(dx.tensor.dtype(), [&](auto t) {
    using T = decltype(t);
    const Pieces<T> pieces(dy, widths);
    in_pieces_of<T>(widths, [&](auto n) {
      constexpr int N = decltype(n)::value;
      split_backward_kernel<N><<<blocks_for(size, kThreads * N), kThreads, 0, stream>>>(pieces, goal<T>(dx), size);
    });
  });
  check_launch();
}

}  // namespace saccade::cuda
