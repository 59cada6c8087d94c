#pragma once
/// Inputs of all causal convolutions, and the kernels for any number of taps: a thread per element, inputs from the cache.
#include "kernels/cuda/device/column_runs.cuh"
#include "kernels/ops/causal_conv/causal_conv_cuda.h"

namespace saccade::cuda {

template <class T>
struct ConvInputs {
  const T *x, *history;
  const float *weight, *bias;
  int64_t length;
  int columns, taps;
  bool silu;

  ConvInputs(const CausalConv& in, const Tensor& past)
      : x(pointer<T>(in.x)),
        history(pointer_or_null<T>(past)),
        weight(pointer<float>(in.weight)),
        bias(pointer_or_null<float>(in.bias)),
        length(in.x.dim(1)),
        columns(static_cast<int>(in.x.dim(2))),
        taps(static_cast<int>(in.weight.dim(1))),
        silu(in.f == Activation::silu) {}

  /// Row of token t of sequence b, null for zeros.
  __device__ const T* at(int64_t b, int64_t t) const {
    if (t >= 0) return x + (b * length + t) * columns;
    return history ? history + (b * (taps - 1) + t + taps - 1) * columns : nullptr;
  }
  __device__ float pre(int64_t b, int64_t t, int column) const {
    float p = bias ? bias[column] : 0.0f;
    for (int j = 0; j < taps; ++j) {
      const T* row = at(b, t - taps + 1 + j);
      if (row) p += weight[column * taps + j] * to_float(row[column]);
    }
    return p;
  }
};

constexpr int kLongThreads = 256;

template <class T>
__global__ void __launch_bounds__(kLongThreads) long_conv_kernel(ConvInputs<T> in, T* y, int64_t size) {
  const int64_t i = int64_t{blockIdx.x} * kLongThreads + threadIdx.x, row = i / in.columns;
  if (i >= size) return;
  const float p = in.pre(row / in.length, row % in.length, static_cast<int>(i % in.columns));
  y[i] = from_float<T>(in.silu ? silu(p) : p);
}

template <class T>
__global__ void __launch_bounds__(kLongThreads) long_conv_slope_kernel(ConvInputs<T> in, const T* dy, float* d_pre, int64_t size) {
  const int64_t i = int64_t{blockIdx.x} * kLongThreads + threadIdx.x, row = i / in.columns;
  if (i >= size) return;
  const float d = to_float(dy[i]);
  d_pre[i] = in.silu ? d * silu_slope(in.pre(row / in.length, row % in.length, static_cast<int>(i % in.columns))) : d;
}

template <class T>
__global__ void __launch_bounds__(kLongThreads) long_conv_input_kernel(ConvInputs<T> in, const float* d_pre, Goal<T> dx, int64_t size) {
  const int64_t i = int64_t{blockIdx.x} * kLongThreads + threadIdx.x;
  if (i >= size) return;
  const int64_t left = in.length - 1 - i / in.columns % in.length;  // tokens behind this one
  const float* w = in.weight + i % in.columns * in.taps;
  Values<1> d;
  for (int back = 0; back < in.taps && back <= left; ++back) d.v[0] += w[in.taps - 1 - back] * d_pre[i + int64_t{back} * in.columns];
  dx.put(i, d);
}

/// Sums over kPartTokens tokens: tap blockIdx.z % (W + 1) of a column, the last one the bias.
template <class T>
__global__ void __launch_bounds__(kColumnThreads)
    long_conv_filter_kernel(ConvInputs<T> in, const float* d_pre, float* weight_parts, float* bias_parts) {
  const int column = static_cast<int>(blockIdx.x * kColumnThreads + threadIdx.x), tap = static_cast<int>(blockIdx.z) % (in.taps + 1);
  const int64_t b = blockIdx.z / (in.taps + 1), first = int64_t{blockIdx.y} * kPartTokens, part = b * gridDim.y + blockIdx.y;
  if (column >= in.columns) return;
  float sum = 0;
  for (int64_t t = first; t < min(in.length, first + kPartTokens); ++t) {
    const float d = d_pre[(b * in.length + t) * in.columns + column];
    const T* row = in.at(b, t - in.taps + 1 + tap);  // with the bias's tap: the token behind, not read
    sum += tap == in.taps ? d : row ? d * to_float(row[column]) : 0.0f;
  }
  if (tap < in.taps && weight_parts) weight_parts[(part * in.columns + column) * in.taps + tap] = sum;
  if (tap == in.taps && bias_parts) bias_parts[part * in.columns + column] = sum;
}

template <class T>
void long_conv(Stream stream, const ConvInputs<T>& in, T* y, int64_t batch) {
  const int64_t size = batch * in.length * in.columns;
  long_conv_kernel<<<blocks_for(size, kLongThreads), kLongThreads, 0, stream>>>(in, y, size);
}

template <class T>
void long_conv_backward(Stream stream, const ConvInputs<T>& in, const T* dy, const Goal<T>& dx, float* d_pre, float* weight_parts,
                        float* bias_parts, int64_t batch) {
  const int64_t size = batch * in.length * in.columns;
  const unsigned blocks = blocks_for(size, kLongThreads);
  long_conv_slope_kernel<<<blocks, kLongThreads, 0, stream>>>(in, dy, d_pre, size);
  if (dx.to) long_conv_input_kernel<<<blocks, kLongThreads, 0, stream>>>(in, d_pre, dx, size);
  if (!weight_parts && !bias_parts) return;
  const dim3 grid(blocks_for(in.columns, kColumnThreads), static_cast<unsigned>(run_parts(in.length)),
                  static_cast<unsigned>(batch * (in.taps + 1)));
  long_conv_filter_kernel<<<grid, kColumnThreads, 0, stream>>>(in, d_pre, weight_parts, bias_parts);
}

/// The last W − 1 inputs after those of x; a thread owns a column.
template <class T>
__global__ void __launch_bounds__(kLongThreads) move_history_kernel(ConvInputs<T> in, T* history, int64_t batch) {
  const int64_t i = int64_t{blockIdx.x} * kLongThreads + threadIdx.x, b = i / in.columns, column = i % in.columns;
  if (b >= batch) return;
  const int64_t kept = in.taps - 1;
  for (int64_t k = 0; k < kept; ++k) history[(b * kept + k) * in.columns + column] = in.at(b, in.length - kept + k)[column];
}

}  // namespace saccade::cuda
