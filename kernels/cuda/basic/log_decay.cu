// A few numbers per token: elements one by one.
#include "kernels/cuda/device/column_runs.cuh"
#include "kernels/ops/log_decay/log_decay_cuda.h"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ float softplus(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }

template <class T>
__global__ void __launch_bounds__(kThreads)
    log_decay_kernel(const T* a, const float* a_log, const float* bias, float* g, int64_t size, int heads) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < size) g[i] = -expf(a_log[i % heads]) * softplus(to_float(a[i]) + bias[i % heads]);
}

/// da = dg (−e^{a_log}) σ(a + bias), d_log = Σ dg g, d_bias = Σ da.
template <class T>
__global__ void __launch_bounds__(kColumnThreads* kRuns)
    log_decay_backward_kernel(const T* a, const float* a_log, const float* bias, const float* dg, Goal<T> da, float* log_parts,
                              float* bias_parts, int64_t rows, int heads) {
  const Run run(1, rows);
  Values<1> d_log, d_bias;
  if (run.column < heads) {
    const float size = -expf(a_log[run.column]), offset = bias[run.column];
#pragma unroll 4
    for (int64_t row = run.first; row < run.last; ++row) {
      const int64_t i = row * heads + run.column;
      const float x = to_float(a[i]) + offset, d = size * dg[i];
      Values<1> slope;
      slope.v[0] = d * sigmoid(x);
      d_log.v[0] += d * softplus(x);
      d_bias.v[0] += slope.v[0];
      da.put(i, slope);
    }
  }
  write_part(log_parts + int64_t{blockIdx.y} * heads, heads, d_log);
  write_part(bias_parts + int64_t{blockIdx.y} * heads, heads, d_bias);
}

template <class T>
__global__ void __launch_bounds__(kThreads) sigmoid_gate_kernel(const T* x, float* y, int64_t size) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < size) y[i] = sigmoid(to_float(x[i]));
}

template <class T>
__global__ void __launch_bounds__(kThreads) sigmoid_gate_backward_kernel(const float* y, const float* dy, Goal<T> dx, int64_t size) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= size) return;
  Values<1> d;
  d.v[0] = dy[i] * y[i] * (1.0f - y[i]);
  dx.put(i, d);
}

}  // namespace

void log_decay(Stream stream, const LogDecay& in, const Tensor& g) {
  dispatch_cuda(in.a.dtype(), [&](auto t) {
    log_decay_kernel<<<blocks_for(g.size(), kThreads), kThreads, 0, stream>>>(pointer<decltype(t)>(in.a), pointer<float>(in.a_log),
                                                                              pointer<float>(in.bias), pointer<float>(g), g.size(),
                                                                              static_cast<int>(in.bias.size()));
  });
  check_launch();
}

void log_decay_backward(Stream stream, const LogDecay& in, const Tensor& dg, const GradTarget& da, const GradTarget& d_log,
                        const GradTarget& d_bias, const Tensor& parts) {
  const int64_t heads = in.bias.size(), rows = in.a.size() / heads;
  const Tensor log_parts = parts.slice(0, 1), bias_parts = parts.slice(1, 2);
  dispatch_cuda(in.a.dtype(), [&](auto t) {
    using T = decltype(t);
    log_decay_backward_kernel<<<run_grid(heads, 1, rows), run_block(), 0, stream>>>(
        pointer<T>(in.a), pointer<float>(in.a_log), pointer<float>(in.bias), pointer<float>(dg), goal<T>(da), pointer<float>(log_parts),
        pointer<float>(bias_parts), rows, static_cast<int>(heads));
  });
  check_launch();
  if (d_log) sum_parts(stream, log_parts, d_log.tensor, d_log.add);
  if (d_bias) sum_parts(stream, bias_parts, d_bias.tensor, d_bias.add);
}

void sigmoid_gate(Stream stream, const Tensor& x, const Tensor& y) {
  dispatch_cuda(x.dtype(), [&](auto t) {
    sigmoid_gate_kernel<<<blocks_for(x.size(), kThreads), kThreads, 0, stream>>>(pointer<decltype(t)>(x), pointer<float>(y), x.size());
  });
  check_launch();
}

void sigmoid_gate_backward(Stream stream, const Tensor& y, const Tensor& dy, const GradTarget& dx) {
  dispatch_cuda(dx.tensor.dtype(), [&](auto t) {
    sigmoid_gate_backward_kernel<<<blocks_for(y.size(), kThreads), kThreads, 0, stream>>>(pointer<float>(y), pointer<float>(dy),
                                                                                          goal<decltype(t)>(dx), y.size());
  });
  check_launch();
}

}  // namespace saccade::cuda
