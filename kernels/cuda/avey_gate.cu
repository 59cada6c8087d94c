#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/avey_gate.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256;

template <class Body>
__global__ void __launch_bounds__(kThreads) element_kernel(int64_t n, Body body) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) body(i);
}
template <class Body>
void elements(Stream stream, int64_t n, Body body) {
  element_kernel<<<blocks_for(n, kThreads), kThreads, 0, stream>>>(n, body);
  check_launch();
}

template <Activation kF, class T>
struct BiasActivate {
  T* input;
  const float* bias;
  T* value_;
  int columns;
  __device__ void operator()(int64_t i) const {
    const float x = to_float(input[i]) + bias[i % columns];
    if (input != value_) input[i] = from_float<T>(x);
    value_[i] = from_float<T>(value<kF>(x));
  }
};

template <Activation kF, class T>
struct TimesSlope {
  T* d;
  const T* kept;
  bool from_value;
  __device__ void operator()(int64_t i) const {
    const float x = to_float(kept[i]);
    d[i] = from_float<T>(to_float(d[i]) * (from_value ? slope_of_value<kF>(x) : slope<kF>(x)));
  }
};

template <Activation kF, class T>
struct Gate {
  const T *y, *l;
  T* gated;
  __device__ void operator()(int64_t i) const { gated[i] = from_float<T>(value<kF>(to_float(y[i])) * to_float(l[i])); }
};

template <Activation kF, class T>
struct GateBackward {
  T* d_gated;
  const T *y, *l;
  T* d_y;
  bool add_y;
  T* d_l;
  bool add_l;
  __device__ void operator()(int64_t i) const {
    const float d = to_float(d_gated[i]), x = to_float(y[i]), gate = to_float(l[i]), f = value<kF>(x);
    if (d_y) d_y[i] = from_float<T>((add_y ? to_float(d_y[i]) : 0.0f) + d * gate * slope<kF>(x));
    if (d_l) d_l[i] = from_float<T>((add_l ? to_float(d_l[i]) : 0.0f) + d * f);
    d_gated[i] = from_float<T>(f * gate);
  }
};

template <class T>
struct AddBias {
  const T* h;
  const float* bias;
  T* y;
  int columns;
  __device__ void operator()(int64_t i) const { y[i] = from_float<T>(to_float(h[i]) + bias[i % columns]); }
};

template <class T>
T* maybe(const Tensor& x) {
  return x ? pointer<T>(x) : nullptr;
}

/// make(T, activation constant) gives the body.
template <class F>
void with_types(const Tensor& x, Activation f, F&& use) {
  dispatch_cuda(x.dtype(), [&](auto t) { with_activation(f, [&](auto a) { use(t, a); }); });
}

}  // namespace

void bias_activate(Stream stream, Activation f, const Tensor& input, const Tensor& bias, const Tensor& value) {
  with_types(input, f, [&](auto t, auto a) {
    using T = decltype(t);
    elements(
        stream, input.size(),
        BiasActivate<decltype(a)::value, T>{pointer<T>(input), pointer<float>(bias), pointer<T>(value), static_cast<int>(input.dim(-1))});
  });
}

void times_slope(Stream stream, Activation f, const Tensor& d, const Tensor& kept, bool from_value) {
  with_types(d, f, [&](auto t, auto a) {
    using T = decltype(t);
    elements(stream, d.size(), TimesSlope<decltype(a)::value, T>{pointer<T>(d), pointer<T>(kept), from_value});
  });
}

void gate(Stream stream, Activation f, const Tensor& y, const Tensor& l, const Tensor& gated) {
  with_types(y, f, [&](auto t, auto a) {
    using T = decltype(t);
    elements(stream, y.size(), Gate<decltype(a)::value, T>{pointer<T>(y), pointer<T>(l), pointer<T>(gated)});
  });
}

void gate_backward(Stream stream, Activation f, const Tensor& d_gated, const Tensor& y, const Tensor& l, const Tensor& d_y, bool add_y,
                   const Tensor& d_l, bool add_l) {
  with_types(y, f, [&](auto t, auto a) {
    using T = decltype(t);
    elements(
        stream, y.size(),
        GateBackward<decltype(a)::value, T>{pointer<T>(d_gated), pointer<T>(y), pointer<T>(l), maybe<T>(d_y), add_y, maybe<T>(d_l), add_l});
  });
}

void add_bias(Stream stream, const Tensor& h, const Tensor& bias, const Tensor& y) {
  dispatch_cuda(h.dtype(), [&](auto t) {
    using T = decltype(t);
    elements(stream, h.size(), AddBias<T>{pointer<T>(h), pointer<float>(bias), pointer<T>(y), static_cast<int>(h.dim(-1))});
  });
}

}  // namespace saccade::cuda
