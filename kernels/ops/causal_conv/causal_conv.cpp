#include "kernels/ops/causal_conv/causal_conv.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/cpu/smooth.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/attention/head_shape.h"
#include "kernels/ops/causal_conv/causal_conv_cuda.h"
#include "kernels/ops/shared/column_runs.h"
#include "kernels/ops/split/split.h"

namespace saccade {
namespace cpu {
namespace {

constexpr int64_t kTokens = 64;  ///< per task

/// Tokens first … last−1 of one sequence, and where the inputs of any token stand: in x, in the history, or nowhere (zeros).
template <class T>
struct ConvInput {
  const T *x, *history, *zeros;
  int64_t channels, taps;
  const T *weight, *bias;  ///< weight [W, C]; bias may be null
  bool silu;
  const T* at(int64_t t) const {
    if (t >= 0) return x + t * channels;
    return history ? history + (t + taps - 1) * channels : zeros;
  }
};

/// p of one token.
template <class T>
SACCADE_INLINE void filter(const ConvInput<T>& rows, int64_t t, T* p) {
  const int64_t n = rows.channels;
  for (int64_t j = 0; j < rows.taps; ++j) {
    const T *x = rows.at(t - rows.taps + 1 + j), *w = rows.weight + j * n;
    if (j == 0 && rows.bias)
      for (int64_t c = 0; c < n; ++c) p[c] = rows.bias[c] + w[c] * x[c];
    else if (j == 0)
      for (int64_t c = 0; c < n; ++c) p[c] = w[c] * x[c];
    else
      for (int64_t c = 0; c < n; ++c) p[c] += w[c] * x[c];
  }
}

template <class T>
SACCADE_INLINE void forward_rows(const ConvInput<T>& rows, int64_t first, int64_t last, T* y) {
  for (int64_t t = first; t < last; ++t) {
    T* out = y + t * rows.channels;
    filter(rows, t, out);
    if (rows.silu)
      for (int64_t c = 0; c < rows.channels; ++c) out[c] = silu(out[c]);
  }
}

/// Where gradients of one task go: dx of its tokens, and sums over its tokens for weight [W, C] and bias. dp is scratch.
template <class T>
struct BackwardRows {
  const T* dy;
  T* dx;
  bool add;
  T *d_weight, *d_bias;  ///< null when not wanted
  T* dp;
};

/// dp = dy silu'(p);   dx_s = Σ_j w_j dp_{s+W−1−j},   dw_j = Σ_t dp_t x_{t−W+1+j},   db = Σ_t dp_t
template <class T>
SACCADE_INLINE void backward_rows(const ConvInput<T>& rows, const BackwardRows<T>& to, int64_t first, int64_t last, int64_t length) {
  const int64_t n = rows.channels, end = std::min(length, last + rows.taps - 1);
  for (int64_t t = first; t < end; ++t) {
    T* dp = to.dp + (t - first) * n;
    const T* dy = to.dy + t * n;
    if (rows.silu) {
      filter(rows, t, dp);
      for (int64_t c = 0; c < n; ++c) dp[c] = dy[c] * silu_slope(dp[c]);
    } else {
      for (int64_t c = 0; c < n; ++c) dp[c] = dy[c];
    }
  }
  for (int64_t s = first; to.dx && s < last; ++s) {
    T* dx = to.dx + s * n;
    if (!to.add)
      for (int64_t c = 0; c < n; ++c) dx[c] = 0;
    for (int64_t t = s; t < std::min(end, s + rows.taps); ++t) {
      const T *w = rows.weight + (s + rows.taps - 1 - t) * n, *dp = to.dp + (t - first) * n;
      for (int64_t c = 0; c < n; ++c) dx[c] += w[c] * dp[c];
    }
  }
  for (int64_t t = first; to.d_bias && t < last; ++t)
    for (int64_t c = 0; c < n; ++c) to.d_bias[c] += to.dp[(t - first) * n + c];
  for (int64_t t = first; to.d_weight && t < last; ++t)
    for (int64_t j = 0; j < rows.taps; ++j) {
      const T *x = rows.at(t - rows.taps + 1 + j), *dp = to.dp + (t - first) * n;
      T* dw = to.d_weight + j * n;
      for (int64_t c = 0; c < n; ++c) dw[c] += dp[c] * x[c];
    }
}

#define ENTRY_POINTS(T)                                                                                                          \
  SACCADE_SIMD void forward(const ConvInput<T>& rows, int64_t first, int64_t last, T* y) { forward_rows(rows, first, last, y); } \
  SACCADE_SIMD void backward(const ConvInput<T>& rows, const BackwardRows<T>& to, int64_t first, int64_t last, int64_t length) { \
    backward_rows(rows, to, first, last, length);                                                                                \
  }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

/// The filter with taps outermost, and a row of zeros: what every task reads.
template <class T>
struct Filter {
  std::vector<T> weight, zeros;
  ConvInput<T> rows;
  Filter(const Tensor& w, const Tensor& bias, Activation f)
      : weight(static_cast<size_t>(w.size())), zeros(static_cast<size_t>(w.dim(0)), T(0)) {
    const int64_t channels = w.dim(0), taps = w.dim(1);
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t j = 0; j < taps; ++j) weight[static_cast<size_t>(j * channels + c)] = w.data<T>()[c * taps + j];
    rows = {nullptr, nullptr, zeros.data(), channels, taps, weight.data(), bias ? bias.data<T>() : nullptr, f == Activation::silu};
  }
};

int64_t blocks_of(int64_t length) { return (length + kTokens - 1) / kTokens; }

/// Calls body(rows, b, first, last, task) for every block of tokens.
template <class T, class Body>
void for_blocks(const Filter<T>& filter, const Tensor& x, const Tensor& history, Body body) {
  const int64_t length = x.dim(1), blocks = blocks_of(length);
  parallel_for(x.dim(0) * blocks, [&](int64_t task) {
    const int64_t b = task / blocks, first = task % blocks * kTokens;
    ConvInput<T> rows = filter.rows;
    rows.x = x.data<T>() + b * length * rows.channels;
    if (history) rows.history = history.data<T>() + b * (rows.taps - 1) * rows.channels;
    body(rows, b, first, std::min(length, first + kTokens), task);
  });
}

template <class T>
void convolve(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f, const Tensor& history, const Tensor& y) {
  const Filter<T> filter(weight, bias, f);
  for_blocks(filter, x, history, [&](const ConvInput<T>& rows, int64_t b, int64_t first, int64_t last, int64_t) {
    forward(rows, first, last, y.data<T>() + b * x.dim(1) * rows.channels);
  });
}

/// The last W − 1 inputs after those of x.
template <class T>
void move_history(const Tensor& x, const Tensor& history) {
  const int64_t kept = history.dim(1), length = x.dim(1), n = x.dim(2), old = std::max<int64_t>(0, kept - length);
  for (int64_t b = 0; b < x.dim(0); ++b) {
    T* to = history.data<T>() + b * kept * n;
    std::copy(to + (kept - old) * n, to + kept * n, to);
    std::copy_n(x.data<T>() + (b * length + length - (kept - old)) * n, (kept - old) * n, to + old * n);
  }
}

/// Σ of the tasks' parts [tasks, W + 1, C] (filter, then bias), in order.
template <class T>
void sum_parts(const Tensor& parts, const GradTarget& d_weight, const GradTarget& d_bias) {
  const int64_t taps = parts.dim(1) - 1, n = parts.dim(2);
  parallel_ranges(n, 64, [&](int64_t begin, int64_t end) {
    for (int64_t j = 0; j <= taps; ++j)
      for (int64_t c = begin; c < end; ++c) {
        const GradTarget& target = j < taps ? d_weight : d_bias;
        if (!target) continue;
        T& out = target.tensor.data<T>()[j < taps ? c * taps + j : c];
        T sum = target.add ? out : T(0);
        for (int64_t task = 0; task < parts.dim(0); ++task) sum += parts.data<T>()[(task * (taps + 1) + j) * n + c];
        out = sum;
      }
  });
}

template <class T>
void convolve_backward(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f, const Tensor& dy, const GradTarget& dx,
                       const GradTarget& d_weight, const GradTarget& d_bias, const Tensor& parts) {
  const Filter<T> filter(weight, bias, f);
  const int64_t length = x.dim(1), n = x.dim(2), taps = weight.dim(1);
  for_blocks(filter, x, {}, [&](const ConvInput<T>& rows, int64_t b, int64_t first, int64_t last, int64_t task) {
    BackwardRows<T> to{dy.data<T>() + b * length * n, nullptr, dx.add, nullptr, nullptr, scratch<T, 20>((kTokens + taps - 1) * n)};
    if (dx) to.dx = dx.tensor.data<T>() + b * length * n;
    if (parts) {
      T* part = parts.data<T>() + task * (taps + 1) * n;
      std::fill_n(part, (taps + 1) * n, T(0));
      to.d_weight = part, to.d_bias = bias ? part + taps * n : nullptr;
    }
    backward(rows, to, first, last, length);
  });
  if (parts) sum_parts<T>(parts, d_weight, d_bias);
}

}  // namespace
}  // namespace cpu

namespace {

void check(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f) {
  expect(x.rank() == 3 && weight.rank() == 2 && weight.dim(0) == x.dim(2) && weight.dim(1) > 0, op, "x is ", x, ", weight is ", weight,
         "; expected x [B, T, C], weight [C, W]");
  expect(!bias || (bias.size() == x.dim(2) && bias.dtype() == weight.dtype()), op, "bias is ", bias, ", weight is ", weight);
  expect(weight.dtype() == accumulation_dtype(x.dtype()), op, "x is ", x.dtype(), ", weight is ", weight.dtype());
  expect(f == Activation::none || f == Activation::silu, op, "f is neither none nor silu");
}

Cost cost(const Tensor& x, const Tensor& weight, Activation f, double products, double tensors) {
  const double elements = static_cast<double>(x.size());
  return {elements * (2 * products * static_cast<double>(weight.dim(1)) + (f == Activation::silu ? 4 * products : 0)),
          tensors * static_cast<double>(x.bytes()) + static_cast<double>(weight.bytes())};
}

cuda::CausalConvScratch cuda_scratch(Tape& t, const Tensor& x, const Tensor& weight, const GradTarget& d_weight, const GradTarget& d_bias) {
  const int64_t channels = x.dim(2), taps = weight.dim(1), parts = x.dim(0) * cuda::conv_parts(x.dim(1), taps);
  cuda::CausalConvScratch scratch;
  if (taps > cuda::kConvTaps) scratch.d_pre = t.empty(x.shape(), DType::f32);
  if (d_weight) scratch.weight_parts = t.empty({parts, channels, taps}, DType::f32);
  if (d_bias) scratch.bias_parts = t.empty({parts, channels}, DType::f32);
  return scratch;
}

}  // namespace

Tensor causal_conv(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f) {
  check("causal_conv", x, weight, bias, f);
  Tensor y = tape.empty(x.shape(), x.dtype());
  tape.run(
      "causal_conv", cost(x, weight, f, 1, 2),
      [&] { dispatch(x.dtype(), [&](auto zero) { cpu::convolve<decltype(zero)>(x, weight, bias, f, {}, y); }); },
      [&] {
        cuda::causal_conv(tape.stream(), {x, weight, bias, f}, {}, {y});
      });
  tape.record({x, weight, bias}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget dx = t.grad_target(x), d_weight = t.grad_target(weight), d_bias = t.grad_target(bias);
    const bool on_cuda = t.device().targets_cuda();
    const Shape shape{x.dim(0) * cpu::blocks_of(x.dim(1)), weight.dim(1) + 1, x.dim(2)};
    const Tensor parts = !on_cuda && (d_weight || d_bias) ? t.empty(shape, weight.dtype()) : Tensor();
    const cuda::CausalConvScratch scratch = on_cuda ? cuda_scratch(t, x, weight, d_weight, d_bias) : cuda::CausalConvScratch();
    t.run(
        "causal_conv.backward", cost(x, weight, f, 3, 3),
        [&] {
          dispatch(x.dtype(),
                   [&](auto zero) { cpu::convolve_backward<decltype(zero)>(x, weight, bias, f, dy, dx, d_weight, d_bias, parts); });
        },
        [&] {
          cuda::causal_conv_backward(t.stream(), {x, weight, bias, f}, {dy}, {x.dim(2)}, dx, d_weight, d_bias, scratch);
        });
  });
  return y;
}

std::vector<Tensor> causal_conv_pieces(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f,
                                       const std::vector<int64_t>& widths) {
  if (!tape.device().targets_cuda() || weight.dim(1) > cuda::kConvTaps) return split(tape, causal_conv(tape, x, weight, bias, f), widths);
  check("causal_conv", x, weight, bias, f);
  expect(std::accumulate(widths.begin(), widths.end(), int64_t{0}) == x.dim(2), "causal_conv", "x is ", x,
         ", the widths do not add up to its channels");
  std::vector<Tensor> y;
  for (int64_t width : widths) y.push_back(tape.empty({x.dim(0), x.dim(1), width}, x.dtype()));
  const auto nothing = [] {};  // the CPU has gone its way
  tape.run("causal_conv", cost(x, weight, f, 1, 2), nothing, [&] { cuda::causal_conv(tape.stream(), {x, weight, bias, f}, {}, y); });
  std::vector<Tensor*> outputs;
  for (Tensor& piece : y) outputs.push_back(&piece);
  const std::vector<Tensor> recorded = y;
  tape.record({x, weight, bias}, outputs, [=](Tape& t) {
    std::vector<Tensor> dy;
    for (const Tensor& piece : recorded) dy.push_back(t.grad(piece));
    const GradTarget dx = t.grad_target(x), d_weight = t.grad_target(weight), d_bias = t.grad_target(bias);
    const cuda::CausalConvScratch scratch = cuda_scratch(t, x, weight, d_weight, d_bias);
    t.run("causal_conv.backward", cost(x, weight, f, 3, 3), nothing, [&] {
      cuda::causal_conv_backward(t.stream(), {x, weight, bias, f}, dy, widths, dx, d_weight, d_bias, scratch);
    });
  });
  return y;
}

Tensor causal_conv_next(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f, const Tensor& history) {
  check("causal_conv_next", x, weight, bias, f);
  expect(history.shape() == Shape{x.dim(0), weight.dim(1) - 1, x.dim(2)} && history.dtype() == x.dtype(), "causal_conv_next", "history is ",
         history, ", x is ", x, ", weight is ", weight);
  const Tensor y = tape.empty(x.shape(), x.dtype());
  tape.run(
      "causal_conv_next", cost(x, weight, f, 1, 2),
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          cpu::convolve<T>(x, weight, bias, f, history, y);
          cpu::move_history<T>(x, history);
        });
      },
      [&] {
        cuda::causal_conv(tape.stream(), {x, weight, bias, f}, history, {y});
      });
  return y;
}

}  // namespace saccade
