// What stands around the chunk form in Mamba-2: steps and log decays before it, gradients of dt and the parameters after it, weights.
#include "kernels/cuda/mamba2_ssd.h"

#include "kernels/cuda/device_code.cuh"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kChunk = DecayForm::kChunk;

__device__ __forceinline__ float softplus(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }
__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

/// dt and the decays' parameters; a_log null: no decay, shared not null: one for all heads.
template <class T>
struct Steps {
  int batch, length, heads;
  const T *dt, *shared;
  const float *bias, *a_log, *shared_bias;

  explicit Steps(const Mamba2Ssd& in)
      : batch(static_cast<int>(in.x.dim(0))),
        length(static_cast<int>(in.x.dim(1))),
        heads(static_cast<int>(in.x.dim(2))),
        dt(pointer<T>(in.dt)),
        shared(in.shared_dt ? pointer<T>(in.shared_dt) : nullptr),
        bias(pointer<float>(in.dt_bias)),
        a_log(in.a_log ? pointer<float>(in.a_log) : nullptr),
        shared_bias(in.shared_dt ? pointer<float>(in.shared_bias) : nullptr) {}

  __device__ int64_t at(int b, int t, int h) const { return (int64_t{b} * length + t) * heads + h; }
  __device__ float raw(int b, int t, int h) const { return to_float(dt[at(b, t, h)]) + bias[h]; }
  __device__ float raw_shared(int b, int t) const { return to_float(shared[int64_t{b} * length + t]) + shared_bias[0]; }
  /// Log decay, from softplus of the step or of the shared step.
  __device__ float log_decay(int h, float step) const { return -expf(a_log[shared ? 0 : h]) * step; }
};

/// Inclusive running sum over a warp.
__device__ __forceinline__ float warp_scan(float x) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const float before = __shfl_up_sync(0xffffffffu, x, offset);
    if (lane >= offset) x += before;
  }
  return x;
}

/// A warp owns a chunk of one head: Δ [B, H, T] and log decays summed inside the chunk, [B, H or 1, T].
template <class T>
__global__ void __launch_bounds__(kThreads) prepare_kernel(Steps<T> s, float* step, float* running, int64_t count) {
  const int64_t item = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (item >= count) return;
  const int chunks = (s.length + kChunk - 1) / kChunk, lane = static_cast<int>(threadIdx.x) % 32;
  const int h = static_cast<int>(item % s.heads), c = static_cast<int>(item / s.heads % chunks),
            b = static_cast<int>(item / s.heads / chunks);
  float sum = 0;
  for (int t = c * kChunk + lane; t - lane < min(s.length, (c + 1) * kChunk); t += 32) {
    const bool valid = t < s.length;
    const float d = valid ? softplus(s.raw(b, t, h)) : 0.0f;
    if (valid) step[(int64_t{b} * s.heads + h) * s.length + t] = d;
    if (!running || (s.shared && h > 0)) continue;
    float g = 0;
    if (valid) g = s.log_decay(h, s.shared ? softplus(s.raw_shared(b, t)) : d);
    g = sum + warp_scan(g);
    sum = __shfl_sync(0xffffffffu, g, 31);
    if (valid) running[(int64_t{b} * (s.shared ? 1 : s.heads) + h) * s.length + t] = g;
  }
}

/// What comes out of the chunk form, [B, H, T], and where the rest goes.
template <class T>
struct StepGradients {
  const float *d_step, *d_skip, *dg;
  T *d_dt, *d_shared;
  bool add_dt, add_shared;
  float* parts;  ///< [B, 3 H + 2]: bias, D and A_log of every head; then of a shared decay α and b
};

template <class T>
__device__ __forceinline__ void put(T* to, float value, bool add) {
  *to = from_float<T>(add ? to_float(*to) + value : value);
}

/// A block owns a head of a sequence.
template <class T>
__global__ void __launch_bounds__(kThreads) step_gradients_kernel(Steps<T> s, StepGradients<T> out) {
  const int b = static_cast<int>(blockIdx.x) / s.heads, h = static_cast<int>(blockIdx.x) % s.heads;
  const int64_t line = int64_t{blockIdx.x} * s.length;
  const bool own_decay = s.a_log && !s.shared;
  const float a = own_decay ? -expf(s.a_log[h]) : 0.0f;
  float bias = 0, skip = 0, decay = 0;
  for (int t = threadIdx.x; t < s.length; t += kThreads) {
    const float raw = s.raw(b, t, h), dg = own_decay ? out.dg[line + t] : 0.0f;
    const float d_raw = (out.d_step[line + t] + a * dg) * sigmoid(raw);
    bias += d_raw;
    skip += out.d_skip[line + t];
    decay += a * softplus(raw) * dg;
    if (out.d_dt) put(out.d_dt + s.at(b, t, h), d_raw, out.add_dt);
  }
  bias = block_sum<kThreads>(bias), skip = block_sum<kThreads>(skip), decay = block_sum<kThreads>(decay);
  if (threadIdx.x != 0) return;
  float* parts = out.parts + int64_t{b} * (3 * s.heads + 2) + h;
  parts[0] = bias, parts[s.heads] = skip, parts[2 * s.heads] = decay;
}

/// One decay for all heads: a block owns a sequence.
template <class T>
__global__ void __launch_bounds__(kThreads) shared_gradients_kernel(Steps<T> s, StepGradients<T> out) {
  const int b = static_cast<int>(blockIdx.x);
  const float a = -expf(s.a_log[0]);
  float alpha = 0, bias = 0;
  for (int t = threadIdx.x; t < s.length; t += kThreads) {
    float dg = 0;
    for (int h = 0; h < s.heads; ++h) dg += out.dg[(int64_t{b} * s.heads + h) * s.length + t];
    const float raw = s.raw_shared(b, t), d_raw = a * dg * sigmoid(raw);
    alpha += a * softplus(raw) * dg, bias += d_raw;
    if (out.d_shared) put(out.d_shared + int64_t{b} * s.length + t, d_raw, out.add_shared);
  }
  alpha = block_sum<kThreads>(alpha), bias = block_sum<kThreads>(bias);
  if (threadIdx.x != 0) return;
  float* parts = out.parts + int64_t{b} * (3 * s.heads + 2) + 3 * s.heads;
  parts[0] = alpha, parts[1] = bias;
}

/// A thread owns an element of d: its column of the parts [batch, row], summed in order.
__global__ void sum_parts_kernel(const float* parts, int batch, int row, float* d, int n, bool add) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float sum = 0;
  for (int b = 0; b < batch; ++b) sum += parts[int64_t{b} * row + i];
  put(d + i, sum, add);
}

void sum_parts(Stream stream, const Tensor& parts, int64_t column, const GradTarget& d) {
  if (!d) return;
  const int n = static_cast<int>(d.tensor.size());
  sum_parts_kernel<<<blocks_for(n, 128), 128, 0, stream>>>(pointer<float>(parts) + column, static_cast<int>(parts.dim(0)),
                                                           static_cast<int>(parts.dim(1)), pointer<float>(d.tensor), n, d.add);
}

template <class T>
void prepare(Stream stream, const Mamba2Ssd& in, const DecayForm& form) {
  const int64_t count = in.x.dim(0) * form.chunks() * in.x.dim(2);
  prepare_kernel<T><<<blocks_for(count, kWarps), kThreads, 0, stream>>>(Steps<T>(in), pointer<float>(form.step),
                                                                        form.running ? pointer<float>(form.running) : nullptr, count);
  check_launch();
}

/// A warp owns a query of a head and walks the keys from its own token back; log decays are summed on the way.
template <class T>
__global__ void __launch_bounds__(kThreads)
    weights_kernel(Steps<T> s, const T* b, const T* c, const float* skip, int groups, int keys, int sequence, float* weights) {
  const int64_t line = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (line >= int64_t{s.heads} * s.length) return;
  const int h = static_cast<int>(line / s.length), t = static_cast<int>(line % s.length), lane = static_cast<int>(threadIdx.x) % 32;
  const auto key = [&](const T* x, int token) {
    return x + ((int64_t{sequence} * s.length + token) * groups + h * groups / s.heads) * keys;
  };
  float sum = 0;  // of the log decays of tokens behind those of the warp
  for (int first = t; first >= 0; first -= 32) {
    const int j = first - lane;
    float step = 0, g = 0, dot = 0;
    if (j >= 0) {
      step = softplus(s.raw(sequence, j, h));
      if (s.a_log) g = s.log_decay(h, s.shared ? softplus(s.raw_shared(sequence, j)) : step);
      for (int n = 0; n < keys; ++n) dot += to_float(key(c, t)[n]) * to_float(key(b, j)[n]);
    }
    const float through = warp_scan(g);
    if (j >= 0) weights[line * s.length + j] = dot * step * expf(sum + through - g) + (j == t ? skip[h] : 0.0f);
    sum += __shfl_sync(0xffffffffu, through, 31);
  }
  for (int j = t + 1 + lane; j < s.length; j += 32) weights[line * s.length + j] = 0;
}

}  // namespace

void mamba2_ssd(Stream stream, const Mamba2Ssd& in, const Mamba2Room& room, const Tensor& y, const Tensor& end) {
  dispatch_cuda(in.x.dtype(), [&](auto zero) { prepare<decltype(zero)>(stream, in, room.form); });
  scalar_decay(stream, room.form, room.scratch, y, end);
}

void mamba2_ssd_backward(Stream stream, const Mamba2Ssd& in, const Mamba2Room& room, const Mamba2Gradients& out) {
  dispatch_cuda(in.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    prepare<T>(stream, in, room.form);
    scalar_decay_backward(stream, room.form, room.scratch,
                          {out.dy, out.d_end, out.c, out.b, out.x, out.d_step, out.d_skip, out.dg, out.d_start});
    const auto at = [](const GradTarget& target) { return target ? pointer<T>(target.tensor) : nullptr; };
    const StepGradients<T> gradients{pointer<float>(out.d_step),
                                     pointer<float>(out.d_skip),
                                     out.dg ? pointer<float>(out.dg) : nullptr,
                                     at(out.dt),
                                     at(out.shared_dt),
                                     out.dt.add,
                                     out.shared_dt.add,
                                     pointer<float>(out.parts)};
    const Steps<T> steps(in);
    step_gradients_kernel<T><<<static_cast<unsigned>(steps.batch * steps.heads), kThreads, 0, stream>>>(steps, gradients);
    if (in.shared_dt) shared_gradients_kernel<T><<<static_cast<unsigned>(steps.batch), kThreads, 0, stream>>>(steps, gradients);
  });
  const int64_t heads = in.x.dim(2);
  sum_parts(stream, out.parts, 0, out.dt_bias);
  sum_parts(stream, out.parts, heads, out.skip);
  sum_parts(stream, out.parts, in.shared_dt ? 3 * heads : 2 * heads, out.a_log);
  sum_parts(stream, out.parts, 3 * heads + 1, out.shared_bias);
  check_launch();
}

void mamba2_weights(Stream stream, const Mamba2Ssd& in, int64_t sequence, const Tensor& weights) {
  dispatch_cuda(in.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t lines = in.x.dim(1) * in.x.dim(2);
    weights_kernel<T><<<blocks_for(lines, kWarps), kThreads, 0, stream>>>(
        Steps<T>(in), pointer<T>(in.b), pointer<T>(in.c), pointer<float>(in.skip), static_cast<int>(in.b.dim(2)),
        static_cast<int>(in.b.dim(3)), static_cast<int>(sequence), pointer<float>(weights));
  });
  check_launch();
}

}  // namespace saccade::cuda
