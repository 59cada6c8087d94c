// What stands around the chunk form in Mamba-2: steps and log decays before it, gradients of dt and the parameters after it, weights.
#include "kernels/ops/mamba2/mamba2_ssd_cuda.h"

#include "kernels/cuda/device/plain_tile.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/cuda/scalar_decay/running_sum.cuh"
#include "kernels/cuda/scalar_decay/shared_decay.h"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
/// dt and the decays' parameters; a_log null: no decay, shared not null: one for all heads.
template <class T>
struct Steps {
  int length, heads;
  const T *dt, *shared;
  const float *bias, *a_log, *shared_bias;

  explicit Steps(const Mamba2Ssd& in)
      : length(static_cast<int>(in.x.dim(1))),
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

/// What a warp owns: a chunk of one head.
struct Item {
  int64_t index;  ///< of [B, chunks, H]
  int b, c, h;
  int64_t line;  ///< of [B, H, T]
  template <class T>
  __device__ explicit Item(const Steps<T>& s) : index(int64_t{blockIdx.x} * kWarps + threadIdx.x / 32) {
    const int chunks = (s.length + DecayForm::kChunk - 1) / DecayForm::kChunk;
    h = static_cast<int>(index % s.heads), c = static_cast<int>(index / s.heads % chunks), b = static_cast<int>(index / s.heads / chunks);
    line = (int64_t{b} * s.heads + h) * s.length;
  }
};

/// Δ [B, H, T] and, unless null, a head's own log decays summed inside chunks.
template <class T>
__global__ void __launch_bounds__(kThreads) prepare_kernel(Steps<T> s, float* step, float* running, int64_t count) {
  const Item item(s);
  if (item.index >= count) return;
  running_sum(item.c, s.length, running ? running + item.line : nullptr, [&](int t) {
    step[item.line + t] = softplus(s.raw(item.b, t, item.h));
    return running ? s.log_decay(item.h, step[item.line + t]) : 0.0f;
  });
}

/// What comes out of the chunk form, [B, H, T], and where the rest goes; parts [B, chunks, H].
template <class T>
struct StepGradients {
  const float *d_step, *d_skip, *dg;
  Goal<T> d_dt;
  float *bias_parts, *skip_parts, *log_parts;
};

template <class T>
__global__ void __launch_bounds__(kThreads) step_gradients_kernel(Steps<T> s, StepGradients<T> out, int64_t count) {
  constexpr int kChunk = static_cast<int>(DecayForm::kChunk);
  const Item item(s);
  if (item.index >= count) return;
  const bool own_decay = s.a_log && !s.shared;
  const float a = own_decay ? -expf(s.a_log[item.h]) : 0.0f;
  const int end = min(s.length, (item.c + 1) * kChunk);
  float bias = 0, skip = 0, decay = 0;
  for (int t = item.c * kChunk + static_cast<int>(threadIdx.x) % 32; t < end; t += 32) {
    const float raw = s.raw(item.b, t, item.h), dg = own_decay ? out.dg[item.line + t] : 0.0f;
    const float d_raw = (out.d_step[item.line + t] + a * dg) * sigmoid(raw);
    bias += d_raw;
    skip += out.d_skip[item.line + t];
    decay += a * softplus(raw) * dg;
    out.d_dt.template put<1>(s.at(item.b, t, item.h), {{d_raw}});
  }
  bias = warp_sum(bias), skip = warp_sum(skip), decay = warp_sum(decay);
  if (threadIdx.x % 32 == 0) out.bias_parts[item.index] = bias, out.skip_parts[item.index] = skip, out.log_parts[item.index] = decay;
}

SharedDecay shared_of(const Mamba2Ssd& in) { return {in.shared_dt, in.shared_bias, in.a_log}; }

void prepare(Stream stream, const Mamba2Ssd& in, const DecayForm& form) {
  const int64_t count = in.x.dim(0) * form.chunks() * in.x.dim(2);
  dispatch_cuda(in.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    prepare_kernel<T><<<blocks_for(count, kWarps), kThreads, 0, stream>>>(
        Steps<T>(in), pointer<float>(form.step), in.a_log && !in.shared_dt ? pointer<float>(form.running) : nullptr, count);
  });
  check_launch();
  if (in.shared_dt) shared_decay(stream, shared_of(in), form.running);
}

void step_gradients(Stream stream, const Mamba2Ssd& in, const Mamba2Gradients& out) {
  const Tensor bias = out.parts.slice(0, 1), skip = out.parts.slice(1, 2), log = out.parts.slice(2, 3);
  dispatch_cuda(in.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    step_gradients_kernel<T><<<blocks_for(bias.size(), kWarps), kThreads, 0, stream>>>(
        Steps<T>(in),
        {pointer<float>(out.d_step), pointer<float>(out.d_skip), pointer_or_null<float>(out.dg), goal<T>(out.dt), pointer<float>(bias),
         pointer<float>(skip), pointer<float>(log)},
        bias.size());
  });
  check_launch();
  if (out.dt_bias) sum_parts(stream, bias, out.dt_bias.tensor, out.dt_bias.add);
  if (out.skip) sum_parts(stream, skip, out.skip.tensor, out.skip.add);
  if (in.shared_dt)
    shared_decay_backward(stream, shared_of(in), {out.dg, out.shared_dt, out.shared_bias, out.a_log, out.shared_parts});
  else if (out.a_log)
    sum_parts(stream, log, out.a_log.tensor, out.a_log.add);
}

/// A block owns the queries [first, first + kTile) of a head of the sequences from `first_sequence` on and walks the tiles of keys from its
/// own back. A log decay from j to t is the sum over the rest of j's tile, the tiles in between and the begin of t's tile: terms of one
/// sign.
template <class T>
__global__ void __launch_bounds__(plain::kThreads)
    weights_kernel(Steps<T> s, const T* b, const T* c, const float* skip, int groups, int keys, int first_sequence, float* weights) {
  using plain::kTile;
  __shared__ plain::Workspace workspace;
  __shared__ float steps[kTile], sums[kTile], own_sums[kTile];  // log decays of a tile summed up to each token
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kTile, end = min(s.length, first + kTile);  // the longest first
  const int h = static_cast<int>(blockIdx.y) % s.heads, sequence = first_sequence + static_cast<int>(blockIdx.y) / s.heads;
  float* map = weights + int64_t{blockIdx.y} * s.length * s.length;
  const auto element = [&](const T* x, int token, int n) {
    return token < end ? to_float(x[((int64_t{sequence} * s.length + token) * groups + h * groups / s.heads) * keys + n]) : 0.0f;
  };
  float between = 0;
  for (int tile = first; tile >= 0; tile -= kTile) {
    __syncthreads();
    if (threadIdx.x < 32) {
      float sum = 0;
      for (int i = static_cast<int>(threadIdx.x); i < kTile; i += 32) {
        const int j = tile + i;
        const float step = j < end ? softplus(s.raw(sequence, j, h)) : 0.0f;
        const float g = s.a_log && j < end ? s.log_decay(h, s.shared ? softplus(s.raw_shared(sequence, j)) : step) : 0.0f;
        steps[i] = step, sums[i] = sum + warp_scan(g);
        if (tile == first) own_sums[i] = sums[i];
        sum = __shfl_sync(0xffffffffu, sums[i], 31);
      }
    }
    plain::Accumulator dots;
    plain::clear(dots);
    plain::accumulate<plain::Fast::sum, plain::Fast::sum>(
        dots, workspace, keys, [&](int row, int n) { return element(c, first + row, n); },
        [&](int column, int n) { return element(b, tile + column, n); });  // begins with a barrier
    plain::for_own(dots, [&](int row, int column, float dot) {
      const int t = first + row, j = tile + column;
      if (t >= end || j >= end) return;
      const float log_decay = own_sums[row] - sums[column] + (tile == first ? 0.0f : between + sums[kTile - 1]);
      map[int64_t{t} * s.length + j] = j > t ? 0.0f : dot * steps[column] * expf(log_decay) + (j == t ? skip[h] : 0.0f);
    });
    if (tile != first) between += sums[kTile - 1];
  }
  for (int t = first + static_cast<int>(threadIdx.x) / 32; t < end; t += plain::kThreads / 32)
    for (int j = end + static_cast<int>(threadIdx.x) % 32; j < s.length; j += 32) map[int64_t{t} * s.length + j] = 0;
}

}  // namespace

void mamba2_ssd(Stream stream, const Mamba2Ssd& in, const Mamba2Workspace& workspace, const Tensor& y, const Tensor& end) {
  prepare(stream, in, workspace.form);
  scalar_decay(stream, workspace.form, workspace.scratch, y, end);
}

void mamba2_ssd_backward(Stream stream, const Mamba2Ssd& in, const Mamba2Workspace& workspace, const Mamba2Gradients& out) {
  scalar_decay_backward(stream, workspace.form, workspace.scratch,
                        {out.dy, out.d_end, out.c, out.b, out.x, out.d_step, out.d_skip, out.dg, out.d_start});
  step_gradients(stream, in, out);
}

void mamba2_weights(Stream stream, const Mamba2Ssd& in, const Sequences& sequences, const Tensor& weights) {
  dispatch_cuda(in.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const dim3 grid(blocks_for(weights.dim(1), plain::kTile), static_cast<unsigned>(weights.dim(0)));
    weights_kernel<T><<<grid, plain::kThreads, 0, stream>>>(Steps<T>(in), pointer<T>(in.b), pointer<T>(in.c), pointer<float>(in.skip),
                                                            static_cast<int>(in.b.dim(2)), static_cast<int>(in.b.dim(3)),
                                                            static_cast<int>(sequences.first), pointer<float>(weights));
  });
  check_launch();
}

}  // namespace saccade::cuda
