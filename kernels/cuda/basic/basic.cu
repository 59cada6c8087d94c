#include "kernels/cuda/device/device_code.cuh"
#include "kernels/cuda/device/start_position.cuh"
#include "kernels/engine/cuda_basic.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256;

template <class S, class T>
__global__ void add_into_kernel(S* sum, const T* term, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) sum[i] = from_float<S>(to_float(sum[i]) + to_float(term[i]));
}

template <class S, class T>
__global__ void convert_kernel(S* to, const T* from, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) to[i] = from_float<S>(to_float(from[i]));
}

template <class T>
__global__ void fill_kernel(T* x, float value, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) x[i] = from_float<T>(value);
}

__global__ void count_up_kernel(int32_t* x, int64_t n, int64_t row, StartPosition place) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) x[i] = static_cast<int32_t>(place(i / row) + i % row);
}

__global__ void sum_up_kernel(double* sum, const float* term, double factor, bool fresh) {
  *sum = (fresh ? 0.0 : *sum) + factor * static_cast<double>(*term);
}

__global__ void fill_with_nan_kernel(double* norm, const double* loss) {
  if (!isfinite(*loss)) *norm = nan("");
}

}  // namespace

void count_up(Stream stream, const Tensor& x, const TokenPosition& position) {
  count_up_kernel<<<blocks_for(x.size(), kThreads), kThreads, 0, stream>>>(pointer<int32_t>(x), x.size(), x.dim(1),
                                                                           start_position(position));
  check_launch();
}

void sum_up(Stream stream, const Tensor& sum, const Tensor& term, double factor, bool fresh) {
  sum_up_kernel<<<1, 1, 0, stream>>>(pointer<double>(sum), pointer<float>(term), factor, fresh);
  check_launch();
}

void require_finite(Stream stream, const Tensor& norm, const Tensor& loss) {
  fill_with_nan_kernel<<<1, 1, 0, stream>>>(pointer<double>(norm), pointer<double>(loss));
  check_launch();
}

void add_into(Stream stream, const Tensor& sum, const Tensor& term) {
  dispatch_cuda(sum.dtype(), [&](auto s) {
    dispatch_cuda(term.dtype(), [&](auto t) {
      add_into_kernel<<<blocks_for(sum.size(), kThreads), kThreads, 0, stream>>>(pointer<decltype(s)>(sum), pointer<decltype(t)>(term),
                                                                                 sum.size());
    });
  });
  check_launch();
}

void convert(Stream stream, const Tensor& to, const Tensor& from) {
  if (to.dtype() == from.dtype()) return copy_on_device(stream, to.raw(), from.raw(), from.bytes());
  dispatch_cuda(to.dtype(), [&](auto s) {
    dispatch_cuda(from.dtype(), [&](auto t) {
      convert_kernel<<<blocks_for(to.size(), kThreads), kThreads, 0, stream>>>(pointer<decltype(s)>(to), pointer<decltype(t)>(from),
                                                                               to.size());
    });
  });
  check_launch();
}

void fill(Stream stream, const Tensor& x, double value) {
  dispatch_cuda(x.dtype(), [&](auto t) {
    fill_kernel<<<blocks_for(x.size(), kThreads), kThreads, 0, stream>>>(pointer<decltype(t)>(x), static_cast<float>(value), x.size());
  });
  check_launch();
}

}  // namespace saccade::cuda
