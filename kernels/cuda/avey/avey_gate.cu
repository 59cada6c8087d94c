#include "kernels/cuda/device/activation.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/ops/avey/gate_cuda.h"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256;

/// V elements as floats, in one access of 16 bytes or element by element.
template <int V, class T>
__device__ __forceinline__ void load(const T* from, float (&to)[V]) {
  if constexpr (V == kVector<T>) {
    const Pack<T> pack = load_pack(from);
#pragma unroll
    for (int v = 0; v < V; ++v) to[v] = to_float(pack.v[v]);
  } else {
    to[0] = to_float(*from);
  }
}
template <int V, class T>
__device__ __forceinline__ void store(T* to, const float (&from)[V]) {
  if constexpr (V == kVector<T>) {
    Pack<T> pack;
#pragma unroll
    for (int v = 0; v < V; ++v) pack.v[v] = from_float<T>(from[v]);
    store_pack(to, pack);
  } else {
    *to = from_float<T>(from[0]);
  }
}

/// body(first element, its column) for pieces of V elements of one row each.
template <int V, class Body>
__global__ void __launch_bounds__(kThreads) pieces_kernel(int64_t pieces, unsigned per_row, Body body) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= pieces) return;
  const unsigned column = pieces <= 0xffffffff ? static_cast<unsigned>(i) % per_row : static_cast<unsigned>(i % per_row);
  body.template operator()<V>(i * V, static_cast<int>(column) * V);
}
template <class T, class Body>
void pieces(Stream stream, const Tensor& x, Body body) {
  const auto launch = [&](auto width) {
    constexpr int V = decltype(width)::value;
    const int64_t count = x.size() / V;
    pieces_kernel<V><<<blocks_for(count, kThreads), kThreads, 0, stream>>>(count, static_cast<unsigned>(x.dim(-1) / V), body);
  };
  if (x.dim(-1) % kVector<T> == 0)
    launch(std::integral_constant<int, kVector<T>>{});
  else
    launch(std::integral_constant<int, 1>{});
  check_launch();
}

template <Activation kF, class T>
struct BiasActivate {
  T* input;
  const float* bias;
  T* result;
  template <int V>
  __device__ void operator()(int64_t i, int column) const {
    float x[V];
    load<V>(input + i, x);
#pragma unroll
    for (int v = 0; v < V; ++v) x[v] += bias[column + v];
    if (input != result) store<V>(input + i, x);
#pragma unroll
    for (int v = 0; v < V; ++v) x[v] = value<kF>(x[v]);
    store<V>(result + i, x);
  }
};

template <Activation kF, class T>
struct TimesSlope {
  T* d;
  const T* saved;
  bool from_value;
  template <int V>
  __device__ void operator()(int64_t i, int) const {
    float x[V], y[V];
    load<V>(saved + i, x);
    load<V>(d + i, y);
#pragma unroll
    for (int v = 0; v < V; ++v) y[v] *= from_value ? slope_of_value<kF>(x[v]) : slope<kF>(x[v]);
    store<V>(d + i, y);
  }
};

template <Activation kF, class T>
struct Gate {
  const T *y, *l;
  T* gated;
  template <int V>
  __device__ void operator()(int64_t i, int) const {
    float a[V], b[V];
    load<V>(y + i, a);
    load<V>(l + i, b);
#pragma unroll
    for (int v = 0; v < V; ++v) a[v] = value<kF>(a[v]) * b[v];
    store<V>(gated + i, a);
  }
};

template <Activation kF, class T>
struct GateBackward {
  const T *d_gated, *y, *l;
  T* d_y;
  bool add_y;
  T* d_l;
  bool add_l;
  Activation of_l;
  template <int V>
  __device__ void operator()(int64_t i, int) const {
    float d[V], x[V], gate[V], old_y[V] = {}, old_l[V] = {};
    load<V>(d_gated + i, d);
    load<V>(y + i, x);
    load<V>(l + i, gate);
    if (d_y && add_y) load<V>(d_y + i, old_y);
    if (d_l && add_l) load<V>(d_l + i, old_l);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      old_y[v] += d[v] * gate[v] * slope<kF>(x[v]);
      old_l[v] += d[v] * (kF == Activation::none ? x[v] * slope_over_kept(of_l, gate[v]) : value<kF>(x[v]) * slope_of_kept(of_l, gate[v]));
    }
    if (d_y) store<V>(d_y + i, old_y);
    if (d_l) store<V>(d_l + i, old_l);
  }
};

template <class T>
struct AddBias {
  const T* h;
  const float* bias;
  T* y;
  template <int V>
  __device__ void operator()(int64_t i, int column) const {
    float x[V];
    load<V>(h + i, x);
#pragma unroll
    for (int v = 0; v < V; ++v) x[v] += bias[column + v];
    store<V>(y + i, x);
  }
};

/// parts[block, column] over the block's rows; a thread takes a piece of V columns of every eighth row.
template <int V, class T>
__global__ void __launch_bounds__(kThreads) column_parts_kernel(const T* x, float* parts, int64_t rows, int columns) {
  __shared__ float sums[kThreads / 32][32 * V];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = (static_cast<int>(blockIdx.x) * 32 + lane) * V;
  const int64_t begin = rows * blockIdx.y / gridDim.y, end = rows * (blockIdx.y + 1) / gridDim.y;
  float sum[V] = {};
  if (column < columns) {
#pragma unroll 8
    for (int64_t row = begin + warp; row < end; row += kThreads / 32) {
      float values[V];
      load<V>(x + row * columns + column, values);
#pragma unroll
      for (int v = 0; v < V; ++v) sum[v] += values[v];
    }
  }
#pragma unroll
  for (int v = 0; v < V; ++v) sums[warp][v * 32 + lane] = sum[v];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < 32 * V; i += kThreads) {
    const int to = (static_cast<int>(blockIdx.x) * 32 + i % 32) * V + i / 32;
    float all = 0;
#pragma unroll
    for (int w = 0; w < kThreads / 32; ++w) all += sums[w][i];
    if (to < columns) parts[int64_t{blockIdx.y} * columns + to] = all;
  }
}

/// A block owns 32 columns: warp w adds the parts w, w + 8, …; the warps' sums are added in order.
__global__ void __launch_bounds__(kThreads) add_parts_kernel(const float* parts, float* sums, bool add, int count, int columns) {
  __shared__ float of_warp[kThreads];
  const int column = static_cast<int>(blockIdx.x * 32 + threadIdx.x % 32);
  float sum = 0;
  if (column < columns)
#pragma unroll 8
    for (int p = static_cast<int>(threadIdx.x) / 32; p < count; p += kThreads / 32) sum += parts[int64_t{p} * columns + column];
  of_warp[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= 32 || column >= columns) return;
  sum = add ? sums[column] : 0.0f;
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) sum += of_warp[w * 32 + threadIdx.x];
  sums[column] = sum;
}

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
    pieces<T>(stream, input, BiasActivate<decltype(a)::value, T>{pointer<T>(input), pointer<float>(bias), pointer<T>(value)});
  });
}

void times_slope(Stream stream, Activation f, const Tensor& d, const Tensor& saved, bool from_value) {
  with_types(d, f, [&](auto t, auto a) {
    using T = decltype(t);
    pieces<T>(stream, d, TimesSlope<decltype(a)::value, T>{pointer<T>(d), pointer<T>(saved), from_value});
  });
}

void gate(Stream stream, Activation f, const Tensor& y, const Tensor& l, const Tensor& gated) {
  with_types(y, f, [&](auto t, auto a) {
    using T = decltype(t);
    pieces<T>(stream, y, Gate<decltype(a)::value, T>{pointer<T>(y), pointer<T>(l), pointer<T>(gated)});
  });
}

void gate_backward(Stream stream, Activation f, const Tensor& d_gated, const Tensor& y, const Tensor& l, const Tensor& d_y, bool add_y,
                   const Tensor& d_l, bool add_l, Activation slope) {
  with_types(y, f, [&](auto t, auto a) {
    using T = decltype(t);
    pieces<T>(stream, y,
              GateBackward<decltype(a)::value, T>{pointer<T>(d_gated), pointer<T>(y), pointer<T>(l), pointer_or_null<T>(d_y), add_y,
                                                  pointer_or_null<T>(d_l), add_l, slope});
  });
}

void add_bias(Stream stream, const Tensor& h, const Tensor& bias, const Tensor& y) {
  dispatch_cuda(h.dtype(), [&](auto t) {
    using T = decltype(t);
    pieces<T>(stream, h, AddBias<T>{pointer<T>(h), pointer<float>(bias), pointer<T>(y)});
  });
}

void sum_rows(Stream stream, const Tensor& x, const Tensor& sums, bool add, const Tensor& scratch) {
  const int columns = static_cast<int>(x.dim(-1)), count = static_cast<int>(kSumParts);
  if (columns % 8 != 0) return column_sums(stream, x, columns, sums, add, scratch.slice(0, kColumnParts * columns));
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const dim3 grid(blocks_for(columns, 32 * kVector<T>), static_cast<unsigned>(count));
    column_parts_kernel<kVector<T>><<<grid, kThreads, 0, stream>>>(pointer<T>(x), pointer<float>(scratch), x.dim(0), columns);
  });
  add_parts_kernel<<<blocks_for(columns, 32), kThreads, 0, stream>>>(pointer<float>(scratch), pointer<float>(sums), add, count, columns);
  check_launch();
}

}  // namespace saccade::cuda
