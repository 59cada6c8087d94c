// A thread owns one piece of 16 bytes; the tail of an array is done element by element by the last thread.
#include "kernels/cuda/device/activation.cuh"
#include "kernels/cuda/device/start_position.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/ops/elementwise/elementwise_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256;

/// body(i) for every element, V at a time per thread.
template <int V, class Body>
__global__ void __launch_bounds__(kThreads) each_kernel(int64_t n, Body body) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * V;
  if (at + V <= n)
    body.pack(at);
  else
    for (int64_t i = at; i < n; ++i) body.one(i);
}

template <class T, class Body>
void each(Stream stream, int64_t n, Body body) {
  each_kernel<kVector<T>><<<blocks_for(n, int64_t{kThreads} * kVector<T>), kThreads, 0, stream>>>(n, body);
  check_launch();
}

template <class Body>
__global__ void __launch_bounds__(kThreads) one_by_one_kernel(int64_t n, Body body) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) body.one(i);
}

/// Pieces where a row of h holds whole ones, else element by element.
template <class T, class Body>
void each_in_rows(Stream stream, int64_t size, int64_t n, Body body) {
  if (n % kVector<T> == 0) return each<T>(stream, size, body);
  one_by_one_kernel<<<blocks_for(size, kThreads), kThreads, 0, stream>>>(size, body);
  check_launch();
}

template <class T>
struct Add {
  const T *x1, *x2;
  T* y;
  __device__ void one(int64_t i) const { y[i] = from_float<T>(to_float(x1[i]) + to_float(x2[i])); }
  __device__ void pack(int64_t i) const {
    const Pack<T> a = load_pack(x1 + i), b = load_pack(x2 + i);
    Pack<T> r;
#pragma unroll
    for (int v = 0; v < kVector<T>; ++v) r.v[v] = from_float<T>(to_float(a.v[v]) + to_float(b.v[v]));
    store_pack(y + i, r);
  }
};

template <Activation kF, class T>
struct Activate {
  const T* x;
  T* y;
  __device__ void one(int64_t i) const { y[i] = from_float<T>(value<kF>(to_float(x[i]))); }
  __device__ void pack(int64_t i) const {
    Pack<T> a = load_pack(x + i);
#pragma unroll
    for (int v = 0; v < kVector<T>; ++v) a.v[v] = from_float<T>(value<kF>(to_float(a.v[v])));
    store_pack(y + i, a);
  }
};

template <Activation kF, class T>
struct ActivateBackward {
  const T *x, *dy;
  T* dx;
  bool add;
  __device__ float at(float a, float d, float old) const { return (add ? old : 0.0f) + slope<kF>(a) * d; }
  __device__ void one(int64_t i) const { dx[i] = from_float<T>(at(to_float(x[i]), to_float(dy[i]), add ? to_float(dx[i]) : 0.0f)); }
  __device__ void pack(int64_t i) const {
    const Pack<T> a = load_pack(x + i), d = load_pack(dy + i);
    Pack<T> r{};
    if (add) r = load_pack(dx + i);
#pragma unroll
    for (int v = 0; v < kVector<T>; ++v) r.v[v] = from_float<T>(at(to_float(a.v[v]), to_float(d.v[v]), add ? to_float(r.v[v]) : 0.0f));
    store_pack(dx + i, r);
  }
};

template <Activation kF, class T>
struct Gated {
  const T *gate, *up;
  T* y;
  __device__ void one(int64_t i) const { y[i] = from_float<T>(value<kF>(to_float(gate[i])) * to_float(up[i])); }
  __device__ void pack(int64_t i) const {
    const Pack<T> g = load_pack(gate + i), u = load_pack(up + i);
    Pack<T> r;
#pragma unroll
    for (int v = 0; v < kVector<T>; ++v) r.v[v] = from_float<T>(value<kF>(to_float(g.v[v])) * to_float(u.v[v]));
    store_pack(y + i, r);
  }
};

template <Activation kF, class T>
struct GatedBackward {
  const T *gate, *up, *dy;
  T *d_gate, *d_up;
  bool add_gate, add_up;
  __device__ void one(int64_t i) const {
    const float g = to_float(gate[i]), d = to_float(dy[i]);
    if (d_gate) d_gate[i] = from_float<T>((add_gate ? to_float(d_gate[i]) : 0.0f) + d * to_float(up[i]) * slope<kF>(g));
    if (d_up) d_up[i] = from_float<T>((add_up ? to_float(d_up[i]) : 0.0f) + d * value<kF>(g));
  }
  __device__ void pack(int64_t i) const {
    const Pack<T> g = load_pack(gate + i), u = load_pack(up + i), d = load_pack(dy + i);
    Pack<T> a{}, b{};
    if (d_gate && add_gate) a = load_pack(d_gate + i);
    if (d_up && add_up) b = load_pack(d_up + i);
#pragma unroll
    for (int v = 0; v < kVector<T>; ++v) {
      const float x = to_float(g.v[v]), e = to_float(d.v[v]);
      const Point f = point<kF>(x);
      a.v[v] = from_float<T>((add_gate ? to_float(a.v[v]) : 0.0f) + e * to_float(u.v[v]) * f.slope);
      b.v[v] = from_float<T>((add_up ? to_float(b.v[v]) : 0.0f) + e * f.value);
    }
    if (d_gate) store_pack(d_gate + i, a);
    if (d_up) store_pack(d_up + i, b);
  }
};

/// Where element i of y [rows, n] has its gate and its up in h [rows, 2 n].
struct GateUpIndex {
  int64_t gate, up;
  __device__ GateUpIndex(int64_t i, int64_t row, int n) : gate(i + row * n), up(gate + n) {}
};
template <int V>
__device__ __forceinline__ GateUpIndex index_of_pack(int64_t i, int n) {
  return GateUpIndex(i, static_cast<uint32_t>(i / V) / static_cast<uint32_t>(n / V), n);
}

/// Pieces lie within a row: n is a multiple of kVector or everything goes element by element.
template <Activation kF, class T>
struct GatedPacked {
  const T* h;
  T* y;
  int n;
  __device__ void one(int64_t i) const {
    const GateUpIndex at(i, i / n, n);
    y[i] = from_float<T>(value<kF>(to_float(h[at.gate])) * to_float(h[at.up]));
  }
  __device__ void pack(int64_t i) const {
    const GateUpIndex at = index_of_pack<kVector<T>>(i, n);
    const Pack<T> g = load_pack(h + at.gate), u = load_pack(h + at.up);
    Pack<T> r;
#pragma unroll
    for (int v = 0; v < kVector<T>; ++v) r.v[v] = from_float<T>(value<kF>(to_float(g.v[v])) * to_float(u.v[v]));
    store_pack(y + i, r);
  }
};

template <Activation kF, class T>
struct GatedPackedBackward {
  T* h;
  const T* dy;
  int n;
  __device__ void one(int64_t i) const {
    const GateUpIndex at(i, i / n, n);
    const float d = to_float(dy[i]), u = to_float(h[at.up]);
    const Point f = point<kF>(to_float(h[at.gate]));
    h[at.gate] = from_float<T>(d * u * f.slope);
    h[at.up] = from_float<T>(d * f.value);
  }
  __device__ void pack(int64_t i) const {
    const GateUpIndex at = index_of_pack<kVector<T>>(i, n);
    Pack<T> g = load_pack(h + at.gate), u = load_pack(h + at.up);
    const Pack<T> d = load_pack(dy + i);
#pragma unroll
    for (int v = 0; v < kVector<T>; ++v) {
      const Point f = point<kF>(to_float(g.v[v]));
      g.v[v] = from_float<T>(to_float(d.v[v]) * to_float(u.v[v]) * f.slope);
      u.v[v] = from_float<T>(to_float(d.v[v]) * f.value);
    }
    store_pack(h + at.gate, g);
    store_pack(h + at.up, u);
  }
};

/// Only where the factor is not 1: the usual one costs a look.
template <class T>
struct Scale {
  T* x;
  const float* factor;
  __device__ void one(int64_t i) const { x[i] = from_float<T>(to_float(x[i]) * *factor); }
  __device__ void pack(int64_t i) const {
    if (*factor == 1.0f) return;
    Pack<T> a = load_pack(x + i);
#pragma unroll
    for (int v = 0; v < kVector<T>; ++v) a.v[v] = from_float<T>(to_float(a.v[v]) * *factor);
    store_pack(x + i, a);
  }
};

struct ScaleInto {
  float* to;
  const float *from, *factor;
  bool add;
  __device__ void one(int64_t i) const { to[i] = (add ? to[i] : 0.0f) + from[i] * *factor; }
  __device__ void pack(int64_t i) const {
    const Pack<float> a = load_pack(from + i);
    Pack<float> r{};
    if (add) r = load_pack(to + i);
#pragma unroll
    for (int v = 0; v < kVector<float>; ++v) r.v[v] += a.v[v] * *factor;
    store_pack(to + i, r);
  }
};

template <class T>
__global__ void add_positions_kernel(const T* x, const float* table, T* y, int64_t n, int64_t period, int64_t width, StartPosition place) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) y[i] = from_float<T>(to_float(x[i]) + table[place(i / period) * width + i % period]);
}

template <class T>
__global__ void add_positions_backward_kernel(const T* dy, float* d_table, bool add, int64_t batch, int64_t period, int64_t size) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= size) return;
  float sum = add ? d_table[i] : 0.0f;
  if (i < period)
    for (int64_t b = 0; b < batch; ++b) sum += to_float(dy[b * period + i]);
  d_table[i] = sum;
}

template <class T>
__global__ void fill_rows_kernel(const float* bias, const T* residual, T* y, int64_t size, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < size) y[i] = from_float<T>(bias[i % n] + (residual ? to_float(residual[i]) : 0.0f));
}

template <class T>
T* maybe(const Tensor& x) {
  return x ? pointer<T>(x) : nullptr;
}

}  // namespace

void add(Stream stream, const Tensor& x1, const Tensor& x2, const Tensor& y) {
  dispatch_cuda(y.dtype(), [&](auto t) {
    using T = decltype(t);
    each<T>(stream, y.size(), Add<T>{pointer<T>(x1), pointer<T>(x2), pointer<T>(y)});
  });
}

void activate(Stream stream, Activation f, const Tensor& x, const Tensor& y) {
  dispatch_cuda(y.dtype(), [&](auto t) {
    using T = decltype(t);
    with_activation(f, [&](auto a) { each<T>(stream, y.size(), Activate<decltype(a)::value, T>{pointer<T>(x), pointer<T>(y)}); });
  });
}

void activate_backward(Stream stream, Activation f, const Tensor& x, const Tensor& dy, const Tensor& dx, bool add) {
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    with_activation(f, [&](auto a) {
      each<T>(stream, x.size(), ActivateBackward<decltype(a)::value, T>{pointer<T>(x), pointer<T>(dy), pointer<T>(dx), add});
    });
  });
}

void gated(Stream stream, Activation f, const Tensor& gate, const Tensor& up, const Tensor& y) {
  dispatch_cuda(y.dtype(), [&](auto t) {
    using T = decltype(t);
    with_activation(f, [&](auto a) {
      each<T>(stream, y.size(), Gated<decltype(a)::value, T>{pointer<T>(gate), pointer<T>(up), pointer<T>(y)});
    });
  });
}

void gated_backward(Stream stream, Activation f, const Tensor& gate, const Tensor& up, const Tensor& dy, const Tensor& d_gate,
                    bool add_gate, const Tensor& d_up, bool add_up) {
  dispatch_cuda(gate.dtype(), [&](auto t) {
    using T = decltype(t);
    with_activation(f, [&](auto a) {
      each<T>(stream, gate.size(),
              GatedBackward<decltype(a)::value, T>{pointer<T>(gate), pointer<T>(up), pointer<T>(dy), pointer_or_null<T>(d_gate),
                                                   pointer_or_null<T>(d_up), add_gate, add_up});
    });
  });
}

void gated_packed(Stream stream, Activation f, const Tensor& h, const Tensor& y) {
  const int n = static_cast<int>(h.dim(-1) / 2);
  dispatch_cuda(y.dtype(), [&](auto t) {
    using T = decltype(t);
    with_activation(f, [&](auto a) {
      each_in_rows<T>(stream, y.size(), n, GatedPacked<decltype(a)::value, T>{pointer<T>(h), pointer<T>(y), n});
    });
  });
}

void gated_packed_backward(Stream stream, Activation f, const Tensor& h, const Tensor& dy) {
  const int n = static_cast<int>(h.dim(-1) / 2);
  dispatch_cuda(dy.dtype(), [&](auto t) {
    using T = decltype(t);
    with_activation(f, [&](auto a) {
      each_in_rows<T>(stream, dy.size(), n, GatedPackedBackward<decltype(a)::value, T>{pointer<T>(h), pointer<T>(dy), n});
    });
  });
}

void scale_into(Stream stream, const Tensor& to, bool add, const Tensor& from, const Tensor& factor) {
  each<float>(stream, to.size(), ScaleInto{pointer<float>(to), pointer<float>(from), pointer<float>(factor), add});
}

void scale(Stream stream, const Tensor& x, const Tensor& factor) {
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    each<T>(stream, x.size(), Scale<T>{pointer<T>(x), pointer<float>(factor)});
  });
}

void fill_rows(Stream stream, const Tensor& bias, const Tensor& residual, const Tensor& y) {
  dispatch_cuda(y.dtype(), [&](auto t) {
    using T = decltype(t);
    fill_rows_kernel<<<blocks_for(y.size(), kThreads), kThreads, 0, stream>>>(pointer<float>(bias), pointer_or_null<T>(residual),
                                                                              pointer<T>(y), y.size(), bias.size());
  });
  check_launch();
}

void add_positions(Stream stream, const Tensor& x, const Tensor& table, const TokenPosition& position, const Tensor& y) {
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    add_positions_kernel<<<blocks_for(x.size(), kThreads), kThreads, 0, stream>>>(
        pointer<T>(x), pointer<float>(table), pointer<T>(y), x.size(), x.size() / x.dim(0), x.dim(2), start_position(position));
  });
  check_launch();
}

void add_positions_backward(Stream stream, const Tensor& dy, const Tensor& d_table, bool add) {
  dispatch_cuda(dy.dtype(), [&](auto t) {
    using T = decltype(t);
    add_positions_backward_kernel<<<blocks_for(d_table.size(), kThreads), kThreads, 0, stream>>>(
        pointer<T>(dy), pointer<float>(d_table), add, dy.dim(0), dy.size() / dy.dim(0), d_table.size());
  });
  check_launch();
}

}  // namespace saccade::cuda
