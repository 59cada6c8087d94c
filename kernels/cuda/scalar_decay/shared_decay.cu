#include "kernels/cuda/scalar_decay/shared_decay.h"

#include "kernels/cuda/device/values.cuh"
#include "kernels/cuda/scalar_decay/running_sum.cuh"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
struct Inputs {
  const T* s;
  const float *bias, *exponent;
  explicit Inputs(const SharedDecay& in) : s(pointer<T>(in.s)), bias(pointer<float>(in.bias)), exponent(pointer<float>(in.exponent)) {}
  __device__ float raw(int64_t token) const { return to_float(s[token]) + bias[0]; }
};

/// A warp owns a chunk.
template <class T>
__global__ void __launch_bounds__(32) running_kernel(Inputs<T> in, int length, int chunks, float* running) {
  const int c = static_cast<int>(blockIdx.x) % chunks;
  const int64_t line = int64_t{blockIdx.x} / chunks * length;
  const float a = -expf(in.exponent[0]);
  running_sum(c, length, running + line, [&](int t) { return a * softplus(in.raw(line + t)); });
}

/// A block owns a sequence.
template <class T>
__global__ void __launch_bounds__(kThreads)
    gradients_kernel(Inputs<T> in, int length, int heads, const float* dg, Goal<T> ds, float* bias_parts, float* exponent_parts) {
  const int64_t b = blockIdx.x;
  const float a = -expf(in.exponent[0]);
  float exponent = 0, bias = 0;
  for (int t = threadIdx.x; t < length; t += kThreads) {
    float sum = 0;
    for (int h = 0; h < heads; ++h) sum += dg[(b * heads + h) * length + t];
    const float raw = in.raw(b * length + t), d_raw = a * sum * sigmoid(raw);
    exponent += a * softplus(raw) * sum, bias += d_raw;
    ds.template put<1>(b * length + t, {{d_raw}});
  }
  exponent = block_sum<kThreads>(exponent), bias = block_sum<kThreads>(bias);
  if (threadIdx.x == 0) bias_parts[b] = bias, exponent_parts[b] = exponent;
}

}  // namespace

void shared_decay(Stream stream, const SharedDecay& in, const Tensor& running) {
  const int64_t batch = running.dim(0), length = running.dim(2), chunks = (length + DecayForm::kChunk - 1) / DecayForm::kChunk;
  dispatch_cuda(in.s.dtype(), [&](auto zero) {
    using T = decltype(zero);
    running_kernel<T><<<static_cast<unsigned>(batch * chunks), 32, 0, stream>>>(Inputs<T>(in), static_cast<int>(length),
                                                                                static_cast<int>(chunks), pointer<float>(running));
  });
  check_launch();
}

void shared_decay_backward(Stream stream, const SharedDecay& in, const SharedDecayGradients& out) {
  const Tensor bias_parts = out.parts.slice(0, 1), exponent_parts = out.parts.slice(1, 2);
  dispatch_cuda(in.s.dtype(), [&](auto zero) {
    using T = decltype(zero);
    gradients_kernel<T><<<static_cast<unsigned>(out.dg.dim(0)), kThreads, 0, stream>>>(
        Inputs<T>(in), static_cast<int>(out.dg.dim(2)), static_cast<int>(out.dg.dim(1)), pointer<float>(out.dg), goal<T>(out.s),
        pointer<float>(bias_parts), pointer<float>(exponent_parts));
  });
  check_launch();
  if (out.bias) sum_parts(stream, bias_parts, out.bias.tensor, out.bias.add);
  if (out.exponent) sum_parts(stream, exponent_parts, out.exponent.tensor, out.exponent.add);
}

}  // namespace saccade::cuda
