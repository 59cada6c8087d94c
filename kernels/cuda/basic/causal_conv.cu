// Filters of up to kConvTaps taps: a thread owns a few columns and a run of tokens and keeps the last W inputs in registers.
// Longer ones: causal_conv_long.cuh.
#include "kernels/cuda/basic/causal_conv_long.cuh"
#include "kernels/cuda/device/pieces.cuh"
#include "kernels/ops/causal_conv/causal_conv_cuda.h"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade::cuda {
namespace {

/// Columns of a thread forward and backward: few, so that many threads fit. kAhead tokens are fetched together.
constexpr int kForwardColumns = 4, kBackwardColumns = 2, kAhead = 4;

/// The taps of N columns.
template <int W, int N>
struct Filter {
  Values<N> tap[W], bias;
  bool silu;
  template <class T>
  __device__ Filter(const ConvInputs<T>& in, int column) : silu(in.silu) {
    constexpr int kPiece = N * W % 4 == 0 && N > 1 ? 4 : N * W % 2 == 0 && N > 1 ? 2 : 1;
#pragma unroll
    for (int i = 0; i < N * W; i += kPiece) {
      const Values<kPiece> piece = load_values<kPiece>(in.weight + int64_t{column} * W + i);
#pragma unroll
      for (int k = 0; k < kPiece; ++k) tap[(i + k) % W].v[(i + k) / W] = piece.v[k];
    }
    if (in.bias) bias = load_values<N>(in.bias + column);
  }
};

/// The last W inputs of N columns, newest last.
template <int W, int N>
struct Window {
  Values<N> x[W];
  __device__ void push(const Values<N>& next) {
#pragma unroll
    for (int j = 0; j + 1 < W; ++j) x[j] = x[j + 1];
    x[W - 1] = next;
  }
  __device__ float pre(const Filter<W, N>& f, int i) const {
    float p = f.bias.v[i];
#pragma unroll
    for (int j = 0; j < W; ++j) p += f.tap[j].v[i] * x[j].v[i];
    return p;
  }
};

template <int W, int N, class T>
__device__ __forceinline__ Window<W, N> window_before(const ConvInputs<T>& in, int64_t b, int64_t t, int column) {
  Window<W, N> w;
#pragma unroll
  for (int j = 1; j < W; ++j) {
    const T* x = in.at(b, t - W + j);
    w.push(x ? load_values<N>(x + column) : Values<N>());
  }
  return w;
}

/// What a thread owns.
struct ConvRun {
  int column, count;  ///< count: of tokens, at most 0 for none
  int64_t first;
  template <class T>
  __device__ ConvRun(const ConvInputs<T>& in, int n)
      : column(static_cast<int>(blockIdx.x * kColumnThreads + threadIdx.x) * n),
        first((int64_t{blockIdx.y} * kRuns + threadIdx.y) * kConvRunTokens) {
    count = column < in.columns ? static_cast<int>(min(in.length - first, int64_t{kConvRunTokens})) : 0;
  }
};

template <int W, int N, class T>
__global__ void __launch_bounds__(kColumnThreads* kRuns) causal_conv_kernel(ConvInputs<T> in, Pieces<T> pieces) {
  const ConvRun run(in, N);
  const int64_t b = blockIdx.z, row = b * in.length + run.first;
  if (run.count <= 0) return;
  const Filter<W, N> filter(in, run.column);
  Window<W, N> window = window_before<W, N>(in, b, run.first, run.column);
  const T* __restrict__ x = in.x + row * in.columns + run.column;
  const auto to = pieces.column(run.column);
  T* __restrict__ y = to.data + row * to.stride;
  Piece<N, T> next[kAhead];
  const auto fetch = [&](int from) {
#pragma unroll
    for (int u = 0; u < kAhead; ++u)
      if (from + u < run.count) next[u] = load_piece<N>(x + int64_t{from + u} * in.columns);
  };
  fetch(0);
  for (int from = 0; from < run.count; from += kAhead) {
    Piece<N, T> now[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) now[u] = next[u];
    fetch(from + kAhead);
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (from + u >= run.count) break;
      window.push(values_of(now[u]));
      Values<N> out;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float p = window.pre(filter, i);
        out.v[i] = filter.silu ? silu(p) : p;
      }
      store_values(y + int64_t{from + u} * to.stride, out);
    }
  }
}

/// dp = dy silu'(p), dx_s = Σ_j w_j dp_{s+W−1−j}, dw_j = Σ_t dp_t x_{t−W+1+j}, db = Σ_t dp_t; a run goes on for W − 1 tokens for dx.
template <int W, int N, class T>
__global__ void __launch_bounds__(kColumnThreads* kRuns, sizeof(T) == 2 ? 3 : 2)
    causal_conv_backward_kernel(ConvInputs<T> in, Pieces<T> pieces, Goal<T> dx, float* weight_parts, float* bias_parts) {
  const ConvRun run(in, N);
  const int64_t b = blockIdx.z, row = b * in.length + run.first;
  Values<N> d_tap[W], d_bias;
  if (run.count > 0) {
    const Filter<W, N> filter(in, run.column);
    Window<W, N> window = window_before<W, N>(in, b, run.first, run.column), d_pre;
    const int64_t begin = row * in.columns + run.column;
    const auto of = pieces.column(run.column);
    const T* __restrict__ x = in.x + begin;
    const T* __restrict__ dy = of.data ? of.data + row * of.stride : nullptr;
    const int steps = run.count + W - 1, there = static_cast<int>(min(in.length - run.first, int64_t{steps}));
    Piece<N, T> next[kAhead], above[kAhead];
    const auto fetch = [&](int from, auto whole) {
#pragma unroll
      for (int u = 0; u < kAhead; ++u)
        if (whole || from + u < there) {
          next[u] = load_piece<N>(x + int64_t{from + u} * in.columns);
          if (whole || dy) above[u] = load_piece<N>(dy + int64_t{from + u} * of.stride);
        }
    };
    const auto step = [&](int t, const Piece<N, T>& now, const Piece<N, T>& d_now, auto whole) {
      const int s = t - W + 1;
      if (!whole && t >= steps) return;
      Values<N> d;
      if (whole || t < there) {
        window.push(values_of(now));
        if (whole || dy) d = values_of(d_now);
      }
      if (filter.silu)
#pragma unroll
        for (int i = 0; i < N; ++i) d.v[i] *= silu_slope(window.pre(filter, i));
      if (whole || t < run.count)
#pragma unroll
        for (int i = 0; i < N; ++i) {
          d_bias.v[i] += d.v[i];
#pragma unroll
          for (int j = 0; j < W; ++j) d_tap[j].v[i] += d.v[i] * window.x[j].v[i];
        }
      d_pre.push(d);
      if (!whole && s < 0) return;
      Values<N> out;
#pragma unroll
      for (int i = 0; i < N; ++i)
#pragma unroll
        for (int j = 0; j < W; ++j) out.v[i] += filter.tap[j].v[i] * d_pre.x[W - 1 - j].v[i];
      dx.put(begin + int64_t{s} * in.columns, out);
    };
    fetch(0, std::false_type{});
    for (int from = 0; from < steps; from += kAhead) {
      Piece<N, T> now[kAhead], d_now[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) now[u] = next[u], d_now[u] = above[u];
      const auto go = [&](auto whole) {
#pragma unroll
        for (int u = 0; u < kAhead; ++u) step(from + u, now[u], d_now[u], whole);
      };
      if (dy && from > 0 && from + 2 * kAhead <= run.count) {  // nothing to ask for: most of a run
        fetch(from + kAhead, std::true_type{});
        go(std::true_type{});
      } else {
        fetch(from + kAhead, std::false_type{});
        go(std::false_type{});
      }
    }
  }
  const int64_t part = b * gridDim.y + blockIdx.y;
  if (bias_parts) write_part(bias_parts + part * in.columns, in.columns, d_bias);
  if (!weight_parts) return;
#pragma unroll
  for (int j = 0; j < W; ++j) write_part(weight_parts + part * in.columns * W + j, in.columns, d_tap[j], W);
}

/// Of blocks of n columns a thread.
dim3 conv_grid(const CausalConv& in, int n) {
  return dim3(blocks_for(in.x.dim(2), kColumnThreads * n), static_cast<unsigned>(conv_parts(in.x.dim(1), in.weight.dim(1))),
              static_cast<unsigned>(in.x.dim(0)));
}

/// f(std::integral_constant<int, W>) for the short filters.
template <class F>
void with_taps(int taps, F&& f) {
  if (taps == 1) return f(std::integral_constant<int, 1>{});
  if (taps == 2) return f(std::integral_constant<int, 2>{});
  if (taps == 3) return f(std::integral_constant<int, 3>{});
  f(std::integral_constant<int, 4>{});
}

}  // namespace

void causal_conv(Stream stream, const CausalConv& in, const Tensor& history, const std::vector<Tensor>& y) {
  const int64_t batch = in.x.dim(0), length = in.x.dim(1), columns = in.x.dim(2);
  dispatch_cuda(in.x.dtype(), [&](auto t) {
    using T = decltype(t);
    const ConvInputs<T> inputs(in, history);
    std::vector<int64_t> widths;
    for (const Tensor& piece : y) widths.push_back(piece.dim(-1));
    const Pieces<T> pieces(y, widths);
    if (inputs.taps > kConvTaps)
      long_conv(stream, inputs, pointer<T>(y[0]), batch);
    else
      with_taps(inputs.taps, [&](auto taps) {
        in_pieces_of<kForwardColumns>(widths, [&](auto n) {
          constexpr int N = decltype(n)::value;
          causal_conv_kernel<decltype(taps)::value, N><<<conv_grid(in, N), run_block(), 0, stream>>>(inputs, pieces);
        });
      });
    if (history && inputs.taps > 1)
      move_history_kernel<<<blocks_for(batch * columns, kLongThreads), kLongThreads, 0, stream>>>(inputs, pointer<T>(history), batch);
  });
  check_launch();
}

void causal_conv_backward(Stream stream, const CausalConv& in, const std::vector<Tensor>& dy, const std::vector<int64_t>& widths,
                          const GradTarget& dx, const GradTarget& d_weight, const GradTarget& d_bias, const CausalConvScratch& scratch) {
  const int64_t batch = in.x.dim(0), length = in.x.dim(1), columns = in.x.dim(2);
  float *weight_parts = pointer_or_null<float>(scratch.weight_parts), *bias_parts = pointer_or_null<float>(scratch.bias_parts);
  dispatch_cuda(in.x.dtype(), [&](auto t) {
    using T = decltype(t);
    const ConvInputs<T> inputs(in, {});
    if (inputs.taps > kConvTaps)
      return long_conv_backward(stream, inputs, pointer<T>(dy[0]), goal<T>(dx), pointer<float>(scratch.d_pre), weight_parts, bias_parts,
                                batch);
    const Pieces<T> pieces(dy, widths);
    with_taps(inputs.taps, [&](auto taps) {
      in_pieces_of<kBackwardColumns>(widths, [&](auto n) {
        constexpr int N = decltype(n)::value;
        causal_conv_backward_kernel<decltype(taps)::value, N>
            <<<conv_grid(in, N), run_block(), 0, stream>>>(inputs, pieces, goal<T>(dx), weight_parts, bias_parts);
      });
    });
  });
  check_launch();
  if (d_weight) sum_parts(stream, scratch.weight_parts, d_weight.tensor, d_weight.add);
  if (d_bias) sum_parts(stream, scratch.bias_parts, d_bias.tensor, d_bias.add);
}

}  // namespace saccade::cuda
