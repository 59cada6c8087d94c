// What stands around the chunk form in Mamba without channel-wise decay: steps before it, gate and parameters after it.
#include "kernels/ops/mamba1/mamba1_linear_cuda.h"

#include "kernels/cuda/device/column_runs.cuh"
#include "kernels/cuda/scalar_decay/running_sum.cuh"
#include "kernels/cuda/scalar_decay/shared_decay.h"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256;

/// Rows are tokens of `width` channels.
template <class T>
struct LinearFormTokens {
  int64_t tokens;
  int width;
  const T *u, *dt, *z;
  const float *skip, *bias;
  explicit LinearFormTokens(const Mamba1Scan& in)
      : tokens(in.u.dim(0) * in.u.dim(1)),
        width(static_cast<int>(in.u.dim(2))),
        u(pointer<T>(in.u)),
        dt(pointer<T>(in.dt)),
        z(pointer<T>(in.z)),
        skip(pointer<float>(in.skip)),
        bias(pointer<float>(in.dt_bias)) {}
};

/// use(element, first column) for N neighbours.
template <int N, class Use>
__device__ __forceinline__ void for_piece(int64_t tokens, int width, const Use& use) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * N;
  if (at < tokens * width) use(at, static_cast<int>(at % width));
}

/// v = Δ u
template <int N, class T>
__global__ void __launch_bounds__(kThreads) steps_kernel(LinearFormTokens<T> r, T* v) {
  for_piece<N>(r.tokens, r.width, [&](int64_t at, int column) {
    const Values<N> u = load_values<N>(r.u + at), dt = load_values<N>(r.dt + at);
    Values<N> out;
#pragma unroll
    for (int i = 0; i < N; ++i) out.v[i] = softplus(dt.v[i] + r.bias[column + i]) * u.v[i];
    store_values(v + at, out);
  });
}

/// y = (o + D u) silu(z)
template <int N, class T>
__global__ void __launch_bounds__(kThreads) gate_kernel(LinearFormTokens<T> r, const T* o, T* y) {
  for_piece<N>(r.tokens, r.width, [&](int64_t at, int column) {
    const Values<N> u = load_values<N>(r.u + at), z = load_values<N>(r.z + at), read = load_values<N>(o + at);
    Values<N> out;
#pragma unroll
    for (int i = 0; i < N; ++i) out.v[i] = fmaf(r.skip[column + i], u.v[i], read.v[i]) * silu(z.v[i]);
    store_values(y + at, out);
  });
}

/// gated = dy silu(z),  dz = dy (o + D u) silu'(z)
template <int N, class T>
__global__ void __launch_bounds__(kThreads) gate_backward_kernel(LinearFormTokens<T> r, const T* o, const T* dy, T* gated, Goal<T> dz) {
  for_piece<N>(r.tokens, r.width, [&](int64_t at, int column) {
    const Values<N> u = load_values<N>(r.u + at), z = load_values<N>(r.z + at), read = load_values<N>(o + at), d = load_values<N>(dy + at);
    Values<N> through, to_z;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      through.v[i] = d.v[i] * silu(z.v[i]);
      to_z.v[i] = d.v[i] * fmaf(r.skip[column + i], u.v[i], read.v[i]) * silu_slope(z.v[i]);
    }
    store_values(gated + at, through);
    dz.put(at, to_z);
  });
}

/// du = D dy silu(z) + Δ dv,  dΔ = u dv σ(dt + bias); sums of the bias and of D.
template <int N, class T>
__global__ void __launch_bounds__(kColumnThreads* kRuns)
    steps_backward_kernel(LinearFormTokens<T> r, const T* dy, const T* dv, Goal<T> du, Goal<T> d_dt, float* bias_parts, float* skip_parts) {
  const Run run(N, r.tokens);
  Values<N> bias, skip;
  if (run.column < r.width) {
    const Values<N> offset = load_values<N>(r.bias + run.column), factor = load_values<N>(r.skip + run.column);
    for (int64_t row = run.first; row < run.last; ++row) {
      const int64_t at = row * r.width + run.column;
      const Values<N> u = load_values<N>(r.u + at), dt = load_values<N>(r.dt + at), z = load_values<N>(r.z + at),
                      above = load_values<N>(dy + at), d = load_values<N>(dv + at);
      Values<N> to_u, to_dt;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float raw = dt.v[i] + offset.v[i], gated = above.v[i] * silu(z.v[i]);  // not what was rounded for the products
        to_u.v[i] = fmaf(factor.v[i], gated, softplus(raw) * d.v[i]);
        to_dt.v[i] = u.v[i] * d.v[i] * sigmoid(raw);
        bias.v[i] += to_dt.v[i];
        skip.v[i] += gated * u.v[i];
      }
      du.put(at, to_u);
      d_dt.put(at, to_dt);
    }
  }
  write_part(bias_parts + int64_t{blockIdx.y} * r.width, r.width, bias);
  write_part(skip_parts + int64_t{blockIdx.y} * r.width, r.width, skip);
}

/// [B, D, N] to [B, H, N, P], D = H P, or back.
__global__ void __launch_bounds__(kThreads)
    exchange_kernel(const float* from, float* to, int64_t size, int heads, int states, int width, bool to_heads) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;  // of [B, H, N, P]
  if (i >= size) return;
  const int64_t p = i % width, n = i / width % states, h = i / width / states % heads, b = i / width / states / heads;
  const int64_t other = ((b * heads + h) * width + p) * states + n;
  if (to_heads)
    to[i] = from[other];
  else
    to[other] = from[i];
}

void exchange(Stream stream, const Tensor& from, const Tensor& to, const Tensor& of_heads, bool to_heads) {
  exchange_kernel<<<blocks_for(from.size(), kThreads), kThreads, 0, stream>>>(
      pointer<float>(from), pointer<float>(to), from.size(), static_cast<int>(of_heads.dim(1)), static_cast<int>(of_heads.dim(2)),
      static_cast<int>(of_heads.dim(3)), to_heads);
  check_launch();
}

/// launch(type, pieces, blocks)
template <class Launch>
void elementwise(const Mamba1Scan& in, const Launch& launch) {
  dispatch_cuda(in.u.dtype(), [&](auto zero) {
    in_pieces<8>(in.u.dim(2), [&](auto n) { launch(zero, n, blocks_for(in.u.size(), int64_t{kThreads} * n())); });
  });
  check_launch();
}

SharedDecay shared_of(const Mamba1Scan& in) { return {in.shared_dt, in.shared_bias, in.a_log}; }

void prepare(Stream stream, const Mamba1Scan& in, const DecayForm& form) {
  elementwise(in, [&](auto zero, auto n, unsigned blocks) {
    using T = decltype(zero);
    steps_kernel<n(), T><<<blocks, kThreads, 0, stream>>>(LinearFormTokens<T>(in), pointer<T>(form.x));
  });
  if (form.running) shared_decay(stream, shared_of(in), form.running);
  if (form.start) exchange(stream, in.state.start, form.start, form.start, true);
}

void steps_backward(Stream stream, const Mamba1Scan& in, const Mamba1LinearGradients& out) {
  const Tensor bias = out.parts.slice(0, 1), skip = out.parts.slice(1, 2);
  dispatch_cuda(in.u.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const LinearFormTokens<T> rows(in);
    in_pieces<4>(rows.width, [&](auto n) {
      steps_backward_kernel<n(), T><<<run_grid(rows.width, n(), rows.tokens), run_block(), 0, stream>>>(
          rows, pointer<T>(out.dy), pointer<T>(out.dv), goal<T>(out.u), goal<T>(out.dt), pointer<float>(bias), pointer<float>(skip));
    });
  });
  check_launch();
  if (out.dt_bias) sum_parts(stream, bias, out.dt_bias.tensor, out.dt_bias.add);
  if (out.skip) sum_parts(stream, skip, out.skip.tensor, out.skip.add);
}

}  // namespace

void mamba1_linear(Stream stream, const Mamba1Scan& in, const Mamba1Workspace& workspace, const Tensor& o, const Tensor& y,
                   const Tensor& end) {
  prepare(stream, in, workspace.form);
  scalar_decay(stream, workspace.form, workspace.scratch, o, workspace.end);
  if (end) exchange(stream, workspace.end, end, workspace.end, false);
  elementwise(in, [&](auto zero, auto n, unsigned blocks) {
    using T = decltype(zero);
    gate_kernel<n(), T><<<blocks, kThreads, 0, stream>>>(LinearFormTokens<T>(in), pointer<T>(o), pointer<T>(y));
  });
}

void mamba1_linear_backward(Stream stream, const Mamba1Scan& in, const Mamba1Workspace& workspace, const Mamba1LinearGradients& out) {
  const DecayForm& form = workspace.form;
  elementwise(in, [&](auto zero, auto n, unsigned blocks) {
    using T = decltype(zero);
    gate_backward_kernel<n(), T><<<blocks, kThreads, 0, stream>>>(LinearFormTokens<T>(in), pointer<T>(out.o), pointer<T>(out.dy),
                                                                  pointer<T>(out.gated), goal<T>(out.z));
  });
  prepare(stream, in, form);
  if (out.d_end) exchange(stream, out.d_end, out.chunk_end, out.chunk_end, true);
  const auto heads = [&](const GradTarget& target) {
    return target ? GradTarget{target.tensor.reshape(form.q.shape()), target.add} : GradTarget{};
  };
  DecayGradients gradients;
  gradients.d_o = out.gated.reshape(form.x.shape());
  gradients.d_end = out.chunk_end;
  gradients.dq = heads(out.c);
  gradients.dk = heads(out.b);
  gradients.dx.tensor = out.dv.reshape(form.x.shape());
  gradients.d_step = out.lines.slice(0, 1);
  gradients.d_skip = out.lines.slice(1, 2);
  gradients.dg = out.dg;
  gradients.d_start = out.chunk_start;
  scalar_decay_backward(stream, form, workspace.scratch, gradients);
  if (out.d_start) exchange(stream, out.chunk_start, out.d_start, out.chunk_start, false);
  steps_backward(stream, in, out);
  if (in.shared_dt) shared_decay_backward(stream, shared_of(in), {out.dg, out.shared_dt, out.shared_bias, out.a_log, out.shared_parts});
}

}  // namespace saccade::cuda
