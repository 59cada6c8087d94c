// Batched products over rectangles of contexts, with one kernel between them that masks, scales to cosines and weighs.
#include "kernels/cuda/avey/avey_layout.cuh"
#include "kernels/ops/avey/context_weights.h"
#include "kernels/ops/avey/contexts_cuda.h"
#include "kernels/ops/avey/contextualizer_cuda.h"
#include "kernels/ops/avey/gate_cuda.h"
#include "kernels/ops/linear/gemm_cuda.h"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

/// inverse[row] = 1 / sqrt(|z|² + 1e-8)
template <class T>
__global__ void __launch_bounds__(kThreads) inverse_norms_kernel(const T* z, float* inverse, int64_t rows, int r) {
  const int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (row >= rows) return;
  float sum = 0;
  for (int i = threadIdx.x % 32; i < r; i += 32) {
    const float v = to_float(z[row * r + i]);
    sum += v * v;
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) inverse[row] = rsqrtf(sum + static_cast<float>(avey::kCosineEps));
}

/// products [n, Q, C] → W = A cos (or A), zero above the diagonal. Thread = (t, j) of one context.
template <class T>
__global__ void __launch_bounds__(kThreads)
    weigh_kernel(const float* products, const float* inverse, const float* A, T* weights, int Q, int C, int first_query, bool dynamic) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x, context = blockIdx.y;
  if (i >= int64_t{Q} * C) return;
  const int t = first_query + static_cast<int>(i / C), j = static_cast<int>(i % C);
  float w = 0;
  if (j <= t) {
    w = A[int64_t{t} * C + j];
    if (dynamic) w *= products[context * Q * C + i] * (inverse[context * C + t] * inverse[context * C + j]);
  }
  weights[context * Q * C + i] = from_float<T>(w);
}

/// From products and d_W of n contexts: W, M = d_cos / (|z_t| |z_j|), and d_A += Σ d_W cos over the contexts in order.
template <class T>
__global__ void __launch_bounds__(kThreads)
    weigh_backward_kernel(const float* products, const float* d_products, const float* inverse, const float* A, T* weights, T* slopes,
                          float* d_A, int n, int Q, int C, int first_query, bool dynamic) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= int64_t{Q} * C) return;
  const int t = first_query + static_cast<int>(i / C), j = static_cast<int>(i % C);
  const bool causal = j <= t;
  const float a = causal ? A[int64_t{t} * C + j] : 0.0f;
  float sum = 0;
  for (int64_t c = 0; c < n; ++c) {
    const int64_t at = c * Q * C + i;
    float w = 0, m = 0;
    if (causal) {
      const float d = d_products[at], both = dynamic ? inverse[c * C + t] * inverse[c * C + j] : 1.0f;
      const float cosine = dynamic ? products[at] * both : 1.0f;
      sum += d * cosine;
      w = a * cosine;
      m = d * a * both;
    }
    weights[at] = from_float<T>(w);
    slopes[at] = from_float<T>(m);
  }
  if (d_A && causal) d_A[int64_t{t} * C + j] += sum;
}

/// d_z − (z · along) / (|z|² + eps) z, added to `along`: the gradient without the share of z in its own norm. By one warp.
template <class T, class S>
__device__ void store_gradient(const T* z, const float* d_z, const float* along, float inverse, S* to, bool add, int r, bool dynamic) {
  const int lane = threadIdx.x % 32;
  float dot = 0;
  if (dynamic)
    for (int i = lane; i < r; i += 32) dot += to_float(z[i]) * along[i];
  const float pull = warp_sum(dot) * inverse * inverse;
  for (int i = lane; i < r; i += 32) {
    const float value = d_z[i] + (dynamic ? along[i] - pull * to_float(z[i]) : 0.0f);
    to[i] = from_float<S>(add ? to_float(to[i]) + value : value);
  }
}

/// Chosen and own rows belong to one context each. A warp owns a place of the rectangles.
template <class T>
__global__ void __launch_bounds__(kThreads)
    rows_gradient_kernel(avey::ContextLayout l, int64_t first_context, int64_t places, const T* z, const float* inverse, const float* d_z,
                         const float* along, T* dZ, bool add, int r, bool dynamic) {
  const int64_t place = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (place >= places) return;
  const int64_t C = l.context_width(), N = l.splits(), context = first_context + place / C;
  const int64_t row = row_at(l, context / N, context % N, place % C);
  if (row < l.pad_rows()) return;
  store_gradient(z + place * r, d_z + place * r, along + place * r, dynamic ? inverse[place] : 0.0f, dZ + row * r, add, r, dynamic);
}

/// Padding rows gather over the contexts that have them, in order: sums [2, pad_rows, r] of d_z and, where it is given, along.
__global__ void __launch_bounds__(kThreads) padding_sums_kernel(avey::ContextLayout l, int64_t first_context, int n, const float* d_z,
                                                                const float* along, float* sums, bool add, int r) {
  const int64_t row = blockIdx.x, C = l.context_width(), N = l.splits(), size = l.pad_rows() * r;
  for (int i = threadIdx.x; i < r; i += kThreads) {
    const int64_t to = row * r + i;
    float a = add ? sums[to] : 0.0f, b = add ? sums[size + to] : 0.0f;
    for (int64_t c = 0; c < n; ++c) {
      if (row >= l.padding_before((first_context + c) % N)) continue;
      a += d_z[(c * C + row) * r + i];
      if (along) b += along[(c * C + row) * r + i];
    }
    sums[to] = a, sums[size + to] = b;
  }
}

template <class T>
__global__ void __launch_bounds__(32)
    padding_gradient_kernel(const T* Z, const float* sums, T* dZ, bool add, int64_t rows, int r, bool dynamic) {
  const int64_t row = blockIdx.x;
  float squares = 0;
  for (int i = threadIdx.x; i < r; i += 32) squares += to_float(Z[row * r + i]) * to_float(Z[row * r + i]);
  const float inverse = rsqrtf(warp_sum(squares) + static_cast<float>(avey::kCosineEps));
  store_gradient(Z + row * r, sums + row * r, sums + (rows + row) * r, inverse, dZ + row * r, add, r, dynamic);
}

/// [n, rows, columns] of a rectangle from row `first` of each context on.
Matrix batch(const Tensor& x, int64_t first = 0) {
  const int64_t columns = x.dim(2);
  return {static_cast<char*>(x.raw()) + first * columns * byte_size(x.dtype()), x.dtype(), columns, x.dim(1) * columns};
}

/// One group of contexts with its rectangles loaded.
struct Group {
  int device;
  const ContextualizerShape& s;
  const ContextualizerScratch& scratch;
  int64_t first, n;

  Rectangles all() const { return {.layout = s.layout, .first_context = first, .contexts = n, .positions = s.C()}; }
  Rectangles results() const {
    return {.layout = s.layout,
            .first_context = first,
            .contexts = n,
            .first_position = s.first_query(),
            .positions = s.queries(),
            .returning = true,
            .own_only = s.own_only};
  }

  template <class T>
  void load(const Tensor& Z) const {
    rows_to_rectangles(stream(device), all(), Z, scratch.z, false);
    if (!s.dynamic) return;
    inverse_norms_kernel<<<blocks_for(n * s.C(), kWarps), kThreads, 0, stream(device)>>>(
        pointer<T>(scratch.z), pointer<float>(scratch.inverse), n * s.C(), static_cast<int>(s.r));
    gemm(device, false, true, s.queries(), s.C(), s.r, 1, batch(scratch.z, s.first_query()), batch(scratch.z), false,
         batch(scratch.products), n);
  }
};

template <class F>
void each_group(int device, const ContextualizerShape& s, const ContextualizerScratch& scratch, F&& f) {
  for (int64_t first = 0; first < s.contexts(); first += s.group())
    f(Group{device, s, scratch, first, std::min(s.group(), s.contexts() - first)});
}

}  // namespace

void contextualize(int device, const ContextualizerShape& s, const ContextualizerScratch& scratch, const Tensor& Z, const Tensor& A,
                   const Tensor& Y, const avey::Gate& to, const Tensor& squares) {
  if (s.tiled(Z.dtype())) return contextualize_tiles(device, s, scratch, Z, A, Y, to, squares);
  dispatch_cuda(Z.dtype(), [&](auto t) {
    using T = decltype(t);
    each_group(device, s, scratch, [&](const Group& g) {
      g.template load<T>(Z);
      const dim3 grid(blocks_for(s.queries() * s.C(), kThreads), static_cast<unsigned>(g.n));
      weigh_kernel<<<grid, kThreads, 0, stream(device)>>>(pointer<float>(scratch.products), pointer<float>(scratch.inverse),
                                                          pointer<float>(A), pointer<T>(scratch.weights), static_cast<int>(s.queries()),
                                                          static_cast<int>(s.C()), static_cast<int>(s.first_query()), s.dynamic);
      gemm(device, false, false, s.queries(), s.r, s.C(), 1, batch(scratch.weights), batch(scratch.z), false, batch(scratch.y), g.n);
      rectangles_to_rows(stream(device), g.results(), scratch.y, Y, false);
    });
  });
  if (to.product) gate(stream(device), Activation::none, Y, to.factor, to.product);
  check_launch();
}

void contextualize_backward(int device, const ContextualizerShape& s, const ContextualizerScratch& scratch, const Tensor& Z,
                            const Tensor& A, const Tensor& dY, const Tensor& dZ, bool add_z, const Tensor& dA, bool add_A, Activation slope,
                            const GradTarget& d_shift) {
  Stream queue = stream(device);
  if (s.tiled(Z.dtype())) {
    const int64_t parts = contextualize_tiles_backward(device, s, scratch, Z, A, dY, dZ, add_z, dA, add_A, slope);
    if (d_shift) sum_parts(queue, scratch.columns.slice(0, parts), d_shift.tensor, d_shift.add);
    return;
  }
  const int C = static_cast<int>(s.C()), Q = static_cast<int>(s.queries()), r = static_cast<int>(s.r);
  const int first_query = static_cast<int>(s.first_query());
  if (dA && !add_A) fill_bytes(queue, dA.raw(), 0, dA.bytes());
  dispatch_cuda(Z.dtype(), [&](auto t) {
    using T = decltype(t);
    each_group(device, s, scratch, [&](const Group& g) {
      g.template load<T>(Z);
      rows_to_rectangles(queue, g.results(), dY, scratch.y, false);
      gemm(device, false, true, Q, C, r, 1, batch(scratch.y), batch(scratch.z), false, batch(scratch.d_products), g.n);
      weigh_backward_kernel<<<blocks_for(int64_t{Q} * C, kThreads), kThreads, 0, queue>>>(
          pointer<float>(scratch.products), pointer<float>(scratch.d_products), pointer<float>(scratch.inverse), pointer<float>(A),
          pointer<T>(scratch.weights), pointer<T>(scratch.slopes), dA ? pointer<float>(dA) : nullptr, static_cast<int>(g.n), Q, C,
          first_query, s.dynamic);
      // d_z = Wᵀ d_y;  along = Mᵀ z + M z
      gemm(device, true, false, C, r, Q, 1, batch(scratch.weights), batch(scratch.y), false, batch(scratch.d_z), g.n);
      if (s.dynamic) {
        gemm(device, true, false, C, r, Q, 1, batch(scratch.slopes), batch(scratch.z, first_query), false, batch(scratch.along), g.n);
        gemm(device, false, false, Q, r, C, 1, batch(scratch.slopes), batch(scratch.z), true, batch(scratch.along, first_query), g.n);
      }
      rows_gradient_kernel<<<blocks_for(g.n * C, kWarps), kThreads, 0, queue>>>(
          s.layout, g.first, g.n * C, pointer<T>(scratch.z), pointer<float>(scratch.inverse), pointer<float>(scratch.d_z),
          pointer<float>(scratch.along), pointer<T>(dZ), add_z, r, s.dynamic);
      if (scratch.padding)
        padding_sums_kernel<<<static_cast<unsigned>(s.layout.pad_rows()), kThreads, 0, queue>>>(
            s.layout, g.first, static_cast<int>(g.n), pointer<float>(scratch.d_z), s.dynamic ? pointer<float>(scratch.along) : nullptr,
            pointer<float>(scratch.padding), g.first > 0, r);
    });
    if (scratch.padding)
      padding_gradient_kernel<<<static_cast<unsigned>(s.layout.pad_rows()), 32, 0, queue>>>(
          pointer<T>(Z), pointer<float>(scratch.padding), pointer<T>(dZ), add_z, s.layout.pad_rows(), r, s.dynamic);
  });
  if (slope != Activation::none) times_slope(queue, slope, dZ, Z, true);
  if (d_shift) sum_rows(queue, dZ, d_shift.tensor, d_shift.add, scratch.columns.reshape({scratch.columns.size()}));
  check_launch();
}

}  // namespace saccade::cuda
