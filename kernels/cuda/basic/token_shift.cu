// A thread owns a few columns and a run of tokens: forward it reads a token once, backward it goes from the last token to the first.
#include <algorithm>
#include <string>

#include "kernels/cuda/device/column_runs.cuh"
#include "kernels/ops/norm/norm_cuda.h"
#include "kernels/ops/token_shift/token_shift_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kMostBlends = 8, kColumns = 2;  ///< columns of a thread backward

template <class T>
struct Shift {
  const T *x, *before;
  int64_t length;
  int columns, count;
  bool previous;
  const float* shared[kMostBlends];  ///< [C], or null
  const T* own[kMostBlends];         ///< [B, T, C], or null

  explicit Shift(const TokenShift& in)
      : x(pointer<T>(in.x)),
        before(pointer_or_null<T>(in.before)),
        length(in.x.dim(1)),
        columns(static_cast<int>(in.x.dim(2))),
        count(static_cast<int>(in.weights.size())),
        previous(in.previous),
        shared{},
        own{} {
    if (count > kMostBlends) throw DeviceError("[token_shift] the CUDA engine does not make " + std::to_string(count) + " blends");
    for (int i = 0; i < count; ++i) {
      const Tensor& w = in.weights[static_cast<size_t>(i)];
      (w.rank() == 1 ? shared[i] = pointer<float>(w) : nullptr);
      (w.rank() == 1 ? nullptr : own[i] = pointer<T>(w));
    }
  }
  /// Element of token t of sequence b.
  __device__ int64_t at(int64_t b, int64_t t, int column) const { return (b * length + t) * columns + column; }
  template <int N>
  __device__ Values<N> token(int64_t b, int64_t t, int column) const {
    if (t >= 0) return load_values<N>(x + at(b, t, column));
    return before ? load_values<N>(before + b * columns + column) : Values<N>();
  }
  template <int N>
  __device__ Values<N> weight(int i, int64_t at, int column) const {
    return shared[i] ? load_values<N>(shared[i] + column) : load_values<N>(own[i] + at);
  }
};

template <class T>
struct Blends {
  T* y[kMostBlends];
};

template <int N, class T>
__global__ void __launch_bounds__(kColumnThreads* kRuns) token_shift_kernel(Shift<T> s, Blends<T> out) {
  const Run run(N, s.length);
  const int64_t b = blockIdx.z;
  if (run.column >= s.columns || run.first >= run.last) return;
  Values<N> before = s.template token<N>(b, run.first - 1, run.column);
  for (int64_t t = run.first; t < run.last; ++t) {
    const int64_t at = s.at(b, t, run.column);
    const Values<N> x = load_values<N>(s.x + at);
#pragma unroll
    for (int i = 0; i < kMostBlends; ++i) {
      if (i >= s.count) break;
      Values<N> w = s.template weight<N>(i, at, run.column);
#pragma unroll
      for (int c = 0; c < N; ++c)
        w.v[c] = s.previous ? x.v[c] + (before.v[c] - x.v[c]) * w.v[c] : before.v[c] + (x.v[c] - before.v[c]) * w.v[c];
      store_values(out.y[i] + at, w);
    }
    before = x;
  }
}

/// Gradients of the blends (null where none arrived) and where those of the weights go: parts for [C], else an element each.
template <class T>
struct Gradients {
  const T* dy[kMostBlends];
  Goal<T> dx, dw[kMostBlends];
  float* parts[kMostBlends];
};

/// Σ_i dy_i and Σ_i dy_i w_i at a token: what it gives to itself and to the one before it.
template <int N>
struct Shares {
  Values<N> all, weighted;
  __device__ float own(int c, bool previous) const { return previous ? all.v[c] - weighted.v[c] : weighted.v[c]; }
  __device__ float before(int c, bool previous) const { return previous ? weighted.v[c] : all.v[c] - weighted.v[c]; }
};

/// What the weights of all blends are: [C] each, [B, T, C] each, or some of both.
enum class Weights { shared, own, mixed };

/// kCount blends at most. Weights that all tokens share stay in registers, others are read at each token.
template <int kCount, Weights kWeights, int N, class T>
struct BlendGradients {
  const Shift<T>& s;
  const Gradients<T>& g;
  int column;
  Values<N> weights[kCount], dy[kCount];

  __device__ BlendGradients(const Shift<T>& shift, const Gradients<T>& gradients, int first) : s(shift), g(gradients), column(first) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      if (kWeights == Weights::shared && i < s.count) weights[i] = load_values<N>(s.shared[i] + column);
  }
  /// All loads first, then their use: so that they are under way together.
  __device__ Shares<N> read(int64_t at) {
    Piece<N, T> raw[kCount] = {}, own[kCount] = {};
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (g.dy[i]) raw[i] = load_piece<N>(g.dy[i] + at);
      if (kWeights == Weights::own && i < s.count) own[i] = load_piece<N>(s.own[i] + at);
    }
    Shares<N> r;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      dy[i] = values_of(raw[i]);
      if (kWeights == Weights::own) weights[i] = values_of(own[i]);
      if (kWeights == Weights::mixed && i < s.count) weights[i] = s.template weight<N>(i, at, column);
#pragma unroll
      for (int c = 0; c < N; ++c) {
        r.all.v[c] += dy[i].v[c];
        r.weighted.v[c] += dy[i].v[c] * weights[i].v[c];
      }
    }
    return r;
  }
};

template <int kCount, Weights kWeights, int N, class T>
__global__ void __launch_bounds__(kColumnThreads* kRuns) token_shift_backward_kernel(Shift<T> s, Gradients<T> g) {
  const Run run(N, s.length);
  const int64_t b = blockIdx.z;
  Values<N> sums[kCount];
  if (run.column < s.columns && run.first < run.last) {
    BlendGradients<kCount, kWeights, N, T> blends(s, g, run.column);
    Values<N> later;  // what the next token gives this one
    if (run.last < s.length) {
      const Shares<N> next = blends.read(s.at(b, run.last, run.column));
#pragma unroll
      for (int c = 0; c < N; ++c) later.v[c] = next.before(c, s.previous);
    }
    Values<N> x = s.template token<N>(b, run.last - 1, run.column);
    for (int64_t t = run.last - 1; t >= run.first; --t) {
      const int64_t at = s.at(b, t, run.column);
      const Values<N> before = s.template token<N>(b, t - 1, run.column);
      const Shares<N> share = blends.read(at);
      Values<N> dx, step;
#pragma unroll
      for (int c = 0; c < N; ++c) {
        dx.v[c] = share.own(c, s.previous) + later.v[c];
        later.v[c] = share.before(c, s.previous);
        step.v[c] = s.previous ? before.v[c] - x.v[c] : x.v[c] - before.v[c];
      }
      g.dx.put(at, dx);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        Values<N> d;
#pragma unroll
        for (int c = 0; c < N; ++c) {
          d.v[c] = blends.dy[i].v[c] * step.v[c];
          sums[i].v[c] += d.v[c];
        }
        if constexpr (kWeights != Weights::shared) g.dw[i].put(at, d);
      }
      x = before;
    }
  }
  const int64_t part = (b * gridDim.y + blockIdx.y) * s.columns;
#pragma unroll
  for (int i = 0; i < kCount; ++i)
    if (g.parts[i]) write_part(g.parts[i] + part, s.columns, sums[i]);
}

/// f(as many blends at least, what the weights are), as std::integral_constants, for the kernels there are.
template <class F>
void with_blends(const TokenShift& in, F&& f) {
  const auto go = [&]<int kCount, Weights kWeights>() {
    f(std::integral_constant<int, kCount>{}, std::integral_constant<Weights, kWeights>{});
  };
  const auto all = [&](int rank) {
    return std::all_of(in.weights.begin(), in.weights.end(), [&](const Tensor& w) { return w.rank() == rank; });
  };
  const size_t count = in.weights.size();
  if (all(3) && count <= 5) return go.template operator()<5, Weights::own>();
  if (!all(1)) return go.template operator()<kMostBlends, Weights::mixed>();
  if (count == 1) return go.template operator()<1, Weights::shared>();
  if (count == 2) return go.template operator()<2, Weights::shared>();
  if (count <= 4) return go.template operator()<4, Weights::shared>();
  if (count <= 6) return go.template operator()<6, Weights::shared>();
  go.template operator()<kMostBlends, Weights::shared>();
}

}  // namespace

void token_shift(Stream stream, const TokenShift& in, const std::vector<Tensor>& y) {
  const int64_t columns = in.x.dim(2);
  dispatch_cuda(in.x.dtype(), [&](auto t) {
    using T = decltype(t);
    const Shift<T> s(in);
    Blends<T> out{};
    for (size_t i = 0; i < y.size(); ++i) out.y[i] = pointer<T>(y[i]);
    in_pieces<kVector<T>>(columns, [&](auto n) {
      constexpr int N = decltype(n)::value;
      token_shift_kernel<N><<<run_grid(columns, N, in.x.dim(1), in.x.dim(0)), run_block(), 0, stream>>>(s, out);
    });
  });
  check_launch();
}

void token_shift_backward(Stream stream, const TokenShift& in, const std::vector<Tensor>& dy, const GradTarget& dx,
                          const std::vector<GradTarget>& dw, const std::vector<Tensor>& parts) {
  const int64_t columns = in.x.dim(2);
  dispatch_cuda(in.x.dtype(), [&](auto t) {
    using T = decltype(t);
    const Shift<T> s(in);
    Gradients<T> g{};
    g.dx = goal<T>(dx);
    for (size_t i = 0; i < dy.size(); ++i) {
      g.dy[i] = pointer_or_null<T>(dy[i]);
      g.parts[i] = pointer_or_null<float>(parts[i]);
      if (!parts[i]) g.dw[i] = goal<T>(dw[i]);
    }
    with_blends(in, [&](auto count, auto kind) {
      in_pieces<kColumns>(columns, [&](auto n) {
        constexpr int N = decltype(n)::value;
        token_shift_backward_kernel<decltype(count)::value, decltype(kind)::value, N>
            <<<run_grid(columns, N, in.x.dim(1), in.x.dim(0)), run_block(), 0, stream>>>(s, g);
      });
    });
  });
  check_launch();
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i]) sum_parts(stream, parts[i], dw[i].tensor, dw[i].add);
}

void last_token(Stream stream, const Tensor& x, const Tensor& last) {
  const size_t row = static_cast<size_t>(last.bytes() / last.dim(0)), sequence = static_cast<size_t>(x.bytes() / x.dim(0));
  check(cudaMemcpy2DAsync(last.raw(), row, static_cast<const char*>(x.raw()) + sequence - row, sequence, row,
                          static_cast<size_t>(last.dim(0)), cudaMemcpyDeviceToDevice, stream));
}

}  // namespace saccade::cuda
