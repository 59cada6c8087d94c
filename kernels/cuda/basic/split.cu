#include "kernels/cuda/device/pieces.cuh"
#include "kernels/ops/split/split_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256;

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

}  // namespace

void split(Stream stream, const Tensor& x, const std::vector<Tensor>& y) {
  std::vector<int64_t> widths;
  for (const Tensor& piece : y) widths.push_back(piece.dim(-1));
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const Pieces<T> pieces(y, widths);
    in_pieces_of<kVector<T>>(widths, [&](auto n) {
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
    in_pieces_of<kVector<T>>(widths, [&](auto n) {
      constexpr int N = decltype(n)::value;
      split_backward_kernel<N><<<blocks_for(size, kThreads * N), kThreads, 0, stream>>>(pieces, goal<T>(dx), size);
    });
  });
  check_launch();
}

}  // namespace saccade::cuda
