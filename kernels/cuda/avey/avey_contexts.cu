// A block or a warp moves one row; a thread N neighbours of it at a time.
#include "kernels/cuda/avey/avey_layout.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/ops/avey/contexts_cuda.h"

namespace saccade::cuda {
namespace {

using avey::ContextLayout;
constexpr int kThreads = 128;

template <int kValues, class T>
__global__ void __launch_bounds__(kThreads)
    contexts_kernel(Layout32 l, const T* x, const int32_t* chosen, const float* weights, T* h, int D) {
  const int place = static_cast<int>(blockIdx.x * (kThreads / 32) + threadIdx.x / 32), C = l.context_width();
  const int context = place / C, p = place % C, b = context / l.splits(), i = context % l.splits();
  if (b >= l.batch) return;
  const int before = l.padding_before(i), own = l.split * l.top_k;
  const int64_t row = row_at(l, b, i, p);
  if (p < before || row < 0) return;
  const int at = context * l.top_k + (p - before) / l.split;
  const float weight = p >= own ? 1.0f : weights[at];
  const T* from = x + int64_t{b * l.tokens + (p >= own ? i * l.split + p - own : chosen[at] * l.split + (p - before) % l.split)} * D;
  for (int d = static_cast<int>(threadIdx.x) % 32 * kValues; d < D; d += 32 * kValues) {
    Values<kValues> x = load_values<kValues>(from + d);
#pragma unroll
    for (int v = 0; v < kValues; ++v) x.v[v] *= weight;
    store_values(h + row * D + d, x);
  }
}

/// d_x of one token: its own row, then w times the rows of every context that chose its split, in ascending order.
template <int N, class T>
__global__ void __launch_bounds__(kThreads)
    contexts_backward_x_kernel(Layout32 l, const int32_t* chosen, const float* weights, const T* dh, T* dx, bool add, int D) {
  extern __shared__ float sums[];
  float* sum = sums + threadIdx.x / 32 * static_cast<unsigned>(D);  // a lane owns its columns
  const int token = static_cast<int>(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32);
  if (token >= l.own_rows()) return;
  const int b = token / l.tokens, t = token % l.tokens, s = t / l.split, offset = t % l.split, splits = l.splits();
  const T* own = dh + int64_t{l.first_own_row() + token} * D;
  T* to = dx + int64_t{token} * D;
  const auto gather = [&](const T* from, float weight, bool more) {
    for (int d = static_cast<int>(threadIdx.x) % 32 * N; d < D; d += 32 * N) {
      const Values<N> x = load_values<N>(from + d);
#pragma unroll
      for (int v = 0; v < N; ++v) sum[d + v] = (more ? sum[d + v] : 0.0f) + weight * x.v[v];
    }
  };
  if (add) gather(to, 1, false);
  gather(own, 1, add);
  const int k = l.top_k;
  if (k > 0)
    each_entry(chosen, (b * splits + s + 1) * k, (b + 1) * splits * k, s, [&](int64_t entry) {
      const int e = static_cast<int>(entry);
      gather(dh + int64_t{l.chosen_row(b, e / k % splits) + e % k * l.split + offset} * D, weights[e], true);
    });
  for (int d = static_cast<int>(threadIdx.x) % 32 * N; d < D; d += 32 * N) {
    Values<N> x;
#pragma unroll
    for (int v = 0; v < N; ++v) x.v[v] = sum[d + v];
    store_values(to + d, x);
  }
}

template <class T>
__global__ void __launch_bounds__(256)
    contexts_backward_weights_kernel(Layout32 l, const T* x, const int32_t* chosen, const T* dh, float* d_weights, bool add, int D) {
  const int e = static_cast<int>(blockIdx.x), k = l.top_k, N = l.splits(), context = e / k, b = context / N, i = context % N, slot = e % k;
  float sum = 0;
  if (slot < l.chosen_count(i)) {
    const T* d = dh + int64_t{l.chosen_row(b, i) + slot * l.split} * D;
    const T* from = x + int64_t{b * l.tokens + chosen[e] * l.split} * D;
#pragma unroll 4
    for (int j = static_cast<int>(threadIdx.x); j < l.split * D; j += 256) sum += to_float(d[j]) * to_float(from[j]);
  }
  sum = block_sum<256>(sum);
  if (threadIdx.x == 0) d_weights[e] = (add ? d_weights[e] : 0.0f) + sum;
}

/// Row that a place in the rectangles stands for, −1 when there is none.
__device__ int64_t row_of_place(const Rectangles& r, int64_t place) {
  const int64_t context = r.first_context + place / r.positions, N = r.layout.splits(), i = context % N;
  int64_t p = r.first_position + place % r.positions;
  if (r.shifted && !r.layout.padding) p += r.layout.padding_before(i);
  if (p >= r.layout.context_width()) return -1;
  int64_t row = row_at(r.layout, context / N, i, p);
  if (!r.returning || row < 0) return row;
  if (r.own_only) return row - r.layout.first_own_row() >= 0 ? row - r.layout.first_own_row() : -1;
  return row < r.layout.pad_rows() && context != 0 ? -1 : row;
}

template <class T>
__global__ void __launch_bounds__(kThreads) rows_to_rectangles_kernel(Rectangles r, const T* rows, T* rectangles, bool add, int W) {
  const int64_t row = row_of_place(r, blockIdx.x);
  T* to = rectangles + int64_t{blockIdx.x} * W;
  for (int w = threadIdx.x; w < W; w += kThreads) {
    const float value = row < 0 ? 0.0f : to_float(rows[row * W + w]);
    to[w] = from_float<T>(add ? to_float(to[w]) + value : value);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) rectangles_to_rows_kernel(Rectangles r, const T* rectangles, T* rows, bool add, int W) {
  const int64_t row = row_of_place(r, blockIdx.x);
  if (row < 0) return;
  if (!r.own_only && row < r.layout.pad_rows() && (!r.returning || r.first_context + blockIdx.x / r.positions != 0)) return;
  const T* from = rectangles + int64_t{blockIdx.x} * W;
  for (int w = threadIdx.x; w < W; w += kThreads) {
    T& to = rows[row * W + w];
    to = add ? from_float<T>(to_float(to) + to_float(from[w])) : from[w];
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) padding_kernel(Rectangles r, const T* rectangles, T* rows, bool add, int W) {
  const int64_t row = blockIdx.x, N = r.layout.splits();
  for (int w = threadIdx.x; w < W; w += kThreads) {
    float sum = add ? to_float(rows[row * W + w]) : 0.0f;
    for (int64_t c = 0; c < r.contexts; ++c)
      if (row < r.layout.padding_before((r.first_context + c) % N)) sum += to_float(rectangles[(c * r.positions + row) * W + w]);
    rows[row * W + w] = from_float<T>(sum);
  }
}

template <class F>
void launch(int64_t blocks, F&& f) {
  if (blocks > 0) f(static_cast<unsigned>(blocks));
  check_launch();
}

}  // namespace

void contexts(Stream stream, const ContextLayout& l, const Tensor& x, const Tensor& chosen, const Tensor& weights, const Tensor& h) {
  const int D = static_cast<int>(x.dim(-1));
  if (l.pad_rows()) fill_bytes(stream, h.raw(), 0, l.pad_rows() * D * byte_size(h.dtype()));
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    in_pieces<8>(D, [&](auto n) {
      launch(blocks_for(l.batch * l.splits() * l.context_width(), kThreads / 32), [&](unsigned blocks) {
        contexts_kernel<n()><<<blocks, kThreads, 0, stream>>>(l, pointer<T>(x), pointer_or_null<int32_t>(chosen),
                                                              pointer_or_null<float>(weights), pointer<T>(h), D);
      });
    });
  });
}

void contexts_backward_x(Stream stream, const ContextLayout& l, const Tensor& chosen, const Tensor& weights, const Tensor& dh,
                         const Tensor& dx, bool add) {
  const int D = static_cast<int>(dx.dim(-1));
  dispatch_cuda(dx.dtype(), [&](auto t) {
    using T = decltype(t);
    in_pieces<8>(D, [&](auto n) {
      const int warps = gathering_warps(D);
      launch(blocks_for(l.own_rows(), warps), [&](unsigned blocks) {
        const size_t bytes = sizeof(float) * static_cast<size_t>(warps * D);
        contexts_backward_x_kernel<n()><<<blocks, static_cast<unsigned>(32 * warps), bytes, stream>>>(
            l, pointer_or_null<int32_t>(chosen), pointer_or_null<float>(weights), pointer<T>(dh), pointer<T>(dx), add, D);
      });
    });
  });
}

void contexts_backward_weights(Stream stream, const ContextLayout& l, const Tensor& x, const Tensor& chosen, const Tensor& dh,
                               const Tensor& d_weights, bool add) {
  const int D = static_cast<int>(x.dim(-1));
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    launch(d_weights.size(), [&](unsigned blocks) {
      contexts_backward_weights_kernel<<<blocks, 256, 0, stream>>>(l, pointer<T>(x), pointer<int32_t>(chosen), pointer<T>(dh),
                                                                   pointer<float>(d_weights), add, D);
    });
  });
}

void rows_to_rectangles(Stream stream, const Rectangles& r, const Tensor& rows, const Tensor& rectangles, bool add) {
  dispatch_cuda(rows.dtype(), [&](auto t) {
    using T = decltype(t);
    launch(r.contexts * r.positions, [&](unsigned blocks) {
      rows_to_rectangles_kernel<<<blocks, kThreads, 0, stream>>>(r, pointer<T>(rows), pointer<T>(rectangles), add,
                                                                 static_cast<int>(rows.dim(-1)));
    });
  });
}

void rectangles_to_rows(Stream stream, const Rectangles& r, const Tensor& rectangles, const Tensor& rows, bool add) {
  dispatch_cuda(rows.dtype(), [&](auto t) {
    using T = decltype(t);
    launch(r.contexts * r.positions, [&](unsigned blocks) {
      rectangles_to_rows_kernel<<<blocks, kThreads, 0, stream>>>(r, pointer<T>(rectangles), pointer<T>(rows), add,
                                                                 static_cast<int>(rows.dim(-1)));
    });
  });
}

void padding_from_rectangles(Stream stream, const Rectangles& r, const Tensor& rectangles, const Tensor& rows, bool add) {
  dispatch_cuda(rows.dtype(), [&](auto t) {
    using T = decltype(t);
    launch(r.layout.pad_rows(), [&](unsigned blocks) {
      padding_kernel<<<blocks, kThreads, 0, stream>>>(r, pointer<T>(rectangles), pointer<T>(rows), add, static_cast<int>(rows.dim(-1)));
    });
  });
}

}  // namespace saccade::cuda
