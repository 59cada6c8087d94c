#include "kernels/cuda/device/column_runs.cuh"
#include "kernels/ops/norm/norm_cuda.h"
#include "kernels/ops/rwkv7/rwkv7_gates_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256, kColumns = 4;      ///< per thread where parameter gradients are summed
constexpr float kDecay = -0.60653065971263342f;  ///< −e^{−1/2}

template <class T>
struct Inputs {
  const T *d, *rate, *k, *kappa;
  const float* k_a;
  explicit Inputs(const Rwkv7GateInputs& in)
      : d(pointer<T>(in.d)), rate(pointer<T>(in.rate)), k(pointer<T>(in.k)), kappa(pointer<T>(in.kappa)), k_a(pointer<float>(in.k_a)) {}
};
/// The outputs, or their gradients.
template <class T>
struct Outputs {
  float* log_w;
  T *k, *a, *b;
  explicit Outputs(const Rwkv7GateOutputs& out)
      : log_w(pointer<float>(out.log_w)), k(pointer<T>(out.k)), a(pointer<T>(out.a)), b(pointer<T>(out.b)) {}
};

template <int N, class T>
__global__ void __launch_bounds__(kThreads) rwkv7_gates_kernel(Inputs<T> in, Outputs<T> out, int64_t size, int columns) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * N;
  if (at >= size) return;
  const Values<N> d = load_values<N>(in.d + at), raw = load_values<N>(in.rate + at), k = load_values<N>(in.k + at),
                  kappa = load_values<N>(in.kappa + at), k_a = load_values<N>(in.k_a + at % columns);
  Values<N> log_w, k_out, a, b;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float rate = sigmoid(raw.v[i]);
    log_w.v[i] = kDecay * sigmoid(d.v[i]);
    k_out.v[i] = k.v[i] * (1.0f + (rate - 1.0f) * k_a.v[i]);
    a.v[i] = -kappa.v[i];
    b.v[i] = kappa.v[i] * rate;
  }
  store_values(out.log_w + at, log_w);
  store_values(out.k + at, k_out);
  store_values(out.a + at, a);
  store_values(out.b + at, b);
}

template <class T>
struct Goals {
  Goal<T> d, rate, k, kappa;
};

template <int N, class T>
__global__ void __launch_bounds__(kColumnThreads* kRuns)
    rwkv7_gates_backward_kernel(Inputs<T> in, Outputs<T> up, Goals<T> to, float* parts, int64_t tokens, int columns) {
  const Run run(N, tokens);
  Values<N> d_k_a;
  if (run.column < columns) {
    const Values<N> k_a = load_values<N>(in.k_a + run.column);
#pragma unroll 2
    for (int64_t t = run.first; t < run.last; ++t) {
      const int64_t at = t * columns + run.column;
      const Values<N> d = load_values<N>(in.d + at), raw = load_values<N>(in.rate + at), k = load_values<N>(in.k + at),
                      kappa = load_values<N>(in.kappa + at);
      const Values<N> dw = load_values<N>(up.log_w + at), dk = load_values<N>(up.k + at), da = load_values<N>(up.a + at),
                      db = load_values<N>(up.b + at);
      Values<N> to_d, to_rate, to_k, to_kappa;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float s = sigmoid(d.v[i]), rate = sigmoid(raw.v[i]);
        to_d.v[i] = dw.v[i] * kDecay * s * (1.0f - s);
        to_rate.v[i] = (db.v[i] * kappa.v[i] + dk.v[i] * k.v[i] * k_a.v[i]) * rate * (1.0f - rate);
        to_kappa.v[i] = db.v[i] * rate - da.v[i];
        to_k.v[i] = dk.v[i] * (1.0f + (rate - 1.0f) * k_a.v[i]);
        d_k_a.v[i] += dk.v[i] * k.v[i] * (rate - 1.0f);
      }
      to.d.put(at, to_d);
      to.rate.put(at, to_rate);
      to.k.put(at, to_k);
      to.kappa.put(at, to_kappa);
    }
  }
  write_part(parts + int64_t{blockIdx.y} * columns, columns, d_k_a);
}

template <int N, class T>
__global__ void __launch_bounds__(kThreads) blend_values_kernel(const T* v, const T* first, const T* raw, T* y, int64_t size) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * N;
  if (at >= size) return;
  Values<N> r = load_values<N>(v + at);
  const Values<N> f = load_values<N>(first + at), x = load_values<N>(raw + at);
#pragma unroll
  for (int i = 0; i < N; ++i) r.v[i] += (f.v[i] - r.v[i]) * sigmoid(x.v[i]);
  store_values(y + at, r);
}

template <int N, class T>
__global__ void __launch_bounds__(kThreads) blend_values_backward_kernel(const T* v, const T* first, const T* raw, const T* dy, Goal<T> dv,
                                                                         Goal<T> d_first, Goal<T> d_raw, int64_t size) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * N;
  if (at >= size) return;
  const Values<N> own = load_values<N>(v + at), f = load_values<N>(first + at), x = load_values<N>(raw + at), d = load_values<N>(dy + at);
  Values<N> to_v, to_first, to_raw;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float s = sigmoid(x.v[i]);
    to_v.v[i] = d.v[i] * (1.0f - s);
    to_first.v[i] = d.v[i] * s;
    to_raw.v[i] = d.v[i] * (f.v[i] - own.v[i]) * s * (1.0f - s);
  }
  dv.put(at, to_v);
  d_first.put(at, to_first);
  d_raw.put(at, to_raw);
}

}  // namespace

void rwkv7_gates(Stream stream, const Rwkv7GateInputs& in, const Rwkv7GateOutputs& out) {
  const int64_t size = in.d.size(), columns = in.k_a.size();
  dispatch_cuda(in.d.dtype(), [&](auto t) {
    using T = decltype(t);
    in_pieces<kVector<T>>(columns, [&](auto n) {
      constexpr int N = decltype(n)::value;
      rwkv7_gates_kernel<N>
          <<<blocks_for(size, kThreads * N), kThreads, 0, stream>>>(Inputs<T>(in), Outputs<T>(out), size, static_cast<int>(columns));
    });
  });
  check_launch();
}

void rwkv7_gates_backward(Stream stream, const Rwkv7GateInputs& in, const Rwkv7GateOutputs& up, const Rwkv7GateTargets& to,
                          const Tensor& parts) {
  const int64_t columns = in.k_a.size(), tokens = in.d.size() / columns;
  dispatch_cuda(in.d.dtype(), [&](auto t) {
    using T = decltype(t);
    const Goals<T> goals{goal<T>(to.d), goal<T>(to.rate), goal<T>(to.k), goal<T>(to.kappa)};
    in_pieces<kColumns>(columns, [&](auto n) {
      constexpr int N = decltype(n)::value;
      rwkv7_gates_backward_kernel<N><<<run_grid(columns, N, tokens), run_block(), 0, stream>>>(
          Inputs<T>(in), Outputs<T>(up), goals, pointer<float>(parts), tokens, static_cast<int>(columns));
    });
  });
  check_launch();
  if (to.k_a) sum_parts(stream, parts, to.k_a.tensor, to.k_a.add);
}

void blend_values(Stream stream, const Tensor& v, const Tensor& first, const Tensor& raw, const Tensor& y) {
  dispatch_cuda(v.dtype(), [&](auto t) {
    using T = decltype(t);
    in_pieces<kVector<T>>(v.size(), [&](auto n) {
      constexpr int N = decltype(n)::value;
      blend_values_kernel<N><<<blocks_for(v.size(), kThreads * N), kThreads, 0, stream>>>(pointer<T>(v), pointer<T>(first), pointer<T>(raw),
                                                                                          pointer<T>(y), v.size());
    });
  });
  check_launch();
}

void blend_values_backward(Stream stream, const Tensor& v, const Tensor& first, const Tensor& raw, const Tensor& dy, const GradTarget& dv,
                           const GradTarget& d_first, const GradTarget& d_raw) {
  dispatch_cuda(v.dtype(), [&](auto t) {
    using T = decltype(t);
    in_pieces<kVector<T>>(v.size(), [&](auto n) {
      constexpr int N = decltype(n)::value;
      blend_values_backward_kernel<N><<<blocks_for(v.size(), kThreads * N), kThreads, 0, stream>>>(
          pointer<T>(v), pointer<T>(first), pointer<T>(raw), pointer<T>(dy), goal<T>(dv), goal<T>(d_first), goal<T>(d_raw), v.size());
    });
  });
  check_launch();
}

}  // namespace saccade::cuda
