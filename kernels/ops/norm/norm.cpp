#include "kernels/ops/norm/norm.h"

#include <algorithm>

#include "kernels/cpu/simd.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade {
namespace cpu {
namespace {

/// Rows one task takes. Gains and biases gather a partial sum per task, so more rows a task when there are many.
struct Blocks {
  int64_t rows, count;
  explicit Blocks(int64_t total) : rows(std::max<int64_t>(32, (total + 63) / 64)), count((total + rows - 1) / rows) {}
};

/// Mean (0 without centring) and 1 / sqrt(mean((x − mean)²) + eps).
template <class T>
struct Moments {
  T mean, inverse;
};
template <bool kCentre, class T>
SACCADE_INLINE Moments<T> moments(const T* x, int64_t n, double eps) {
  T mean = 0;
  if constexpr (kCentre) mean = lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return x[i]; }) / static_cast<T>(n);
  const T squares = lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return (x[i] - mean) * (x[i] - mean); });
  return {mean, T(1) / std::sqrt(squares / static_cast<T>(n) + static_cast<T>(eps))};
}

template <bool kCentre, class T>
SACCADE_INLINE void forward_rows(const T* x, const T* weight, const T* bias, T* y, int64_t rows, int64_t n, double eps) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const Moments<T> m = moments<kCentre>(x, n, eps);
    for (int64_t i = 0; i < n; ++i) {
      const T z = (x[i] - m.mean) * m.inverse * weight[i];
      if constexpr (kCentre)
        y[i] = z + bias[i];
      else
        y[i] = z;
    }
  }
}

/// With z = (x − mean) · inverse and g = weight · d_y:
///   d_x = inverse · (g − mean(g) [centred] − z · mean(g · z)),  d_weight = Σ_rows d_y · z,  d_bias = Σ_rows d_y
/// Null pointers: not wanted.
template <bool kCentre, class T>
SACCADE_INLINE void backward_rows(const T* x, const T* weight, const T* dy, T* dx, bool add, T* d_weight, T* d_bias, int64_t rows,
                                  int64_t n, double eps) {
  if (d_weight) std::fill(d_weight, d_weight + n, T(0));
  if (d_bias) std::fill(d_bias, d_bias + n, T(0));
  for (int64_t r = 0; r < rows; ++r, x += n, dy += n) {
    const Moments<T> m = moments<kCentre>(x, n, eps);
    if (d_weight)
      for (int64_t i = 0; i < n; ++i) d_weight[i] += dy[i] * ((x[i] - m.mean) * m.inverse);
    if (d_bias)
      for (int64_t i = 0; i < n; ++i) d_bias[i] += dy[i];
    if (!dx) continue;
    T offset = 0;
    if constexpr (kCentre) offset = lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return weight[i] * dy[i]; }) / static_cast<T>(n);
    const T slope = m.inverse / static_cast<T>(n) *
                    lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return weight[i] * dy[i] * (x[i] - m.mean); });
    if (add)
      for (int64_t i = 0; i < n; ++i) dx[i] += m.inverse * (weight[i] * dy[i] - offset - (x[i] - m.mean) * m.inverse * slope);
    else
      for (int64_t i = 0; i < n; ++i) dx[i] = m.inverse * (weight[i] * dy[i] - offset - (x[i] - m.mean) * m.inverse * slope);
    dx += n;
  }
}

#define ENTRY_POINTS(T)                                                                                                                  \
  SACCADE_SIMD void rms_rows(const T* x, const T* weight, T* y, int64_t rows, int64_t n, double eps) {                                   \
    forward_rows<false>(x, weight, static_cast<const T*>(nullptr), y, rows, n, eps);                                                     \
  }                                                                                                                                      \
  SACCADE_SIMD void layer_rows(const T* x, const T* weight, const T* bias, T* y, int64_t rows, int64_t n, double eps) {                  \
    forward_rows<true>(x, weight, bias, y, rows, n, eps);                                                                                \
  }                                                                                                                                      \
  SACCADE_SIMD void rms_rows_backward(const T* x, const T* weight, const T* dy, T* dx, bool add, T* d_weight, T* d_bias, int64_t rows,   \
                                      int64_t n, double eps) {                                                                           \
    backward_rows<false>(x, weight, dy, dx, add, d_weight, d_bias, rows, n, eps);                                                        \
  }                                                                                                                                      \
  SACCADE_SIMD void layer_rows_backward(const T* x, const T* weight, const T* dy, T* dx, bool add, T* d_weight, T* d_bias, int64_t rows, \
                                        int64_t n, double eps) {                                                                         \
    backward_rows<true>(x, weight, dy, dx, add, d_weight, d_bias, rows, n, eps);                                                         \
  }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

/// Σ over the partial sums [blocks, n], in order.
template <class T>
void gather(const Tensor& partial, const GradTarget& target) {
  if (!target) return;
  const int64_t n = target.tensor.size(), blocks = partial.size() / n;
  const T* part = partial.data<T>();
  T* sum = target.tensor.data<T>();
  if (!target.add) std::fill(sum, sum + n, T(0));
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t i = 0; i < n; ++i) sum[i] += part[b * n + i];
}

template <class T>
void norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, double eps) {
  const int64_t n = weight.size(), rows = x.size() / n;
  const T *in = x.data<T>(), *g = weight.data<T>(), *b = bias ? bias.data<T>() : nullptr;
  T* out = y.data<T>();
  parallel_ranges(rows, Blocks(rows).rows, [&](int64_t begin, int64_t end) {
    if (b)
      layer_rows(in + begin * n, g, b, out + begin * n, end - begin, n, eps);
    else
      rms_rows(in + begin * n, g, out + begin * n, end - begin, n, eps);
  });
}

template <class T>
void norm_backward(const Tensor& x, const Tensor& weight, const Tensor& dy, double eps, bool centred, const GradTarget& dx,
                   const GradTarget& d_weight, const GradTarget& d_bias, const Tensor& weight_parts, const Tensor& bias_parts) {
  const int64_t n = weight.size(), rows = x.size() / n;
  const Blocks blocks(rows);
  parallel_for(blocks.count, [&](int64_t block) {
    const int64_t begin = block * blocks.rows, count = std::min(blocks.rows, rows - begin);
    const auto part = [&](const Tensor& parts) { return parts ? parts.data<T>() + block * n : nullptr; };
    T* out = dx ? dx.tensor.data<T>() + begin * n : nullptr;
    const auto run = [&](auto rows_backward) {
      rows_backward(x.data<T>() + begin * n, weight.data<T>(), dy.data<T>() + begin * n, out, dx.add, part(weight_parts), part(bias_parts),
                    count, n, eps);
    };
    using Rows = void (*)(const T*, const T*, const T*, T*, bool, T*, T*, int64_t, int64_t, double);
    run(centred ? static_cast<Rows>(layer_rows_backward) : static_cast<Rows>(rms_rows_backward));
  });
  gather<T>(weight_parts, d_weight);
  gather<T>(bias_parts, d_bias);
}

}  // namespace
}  // namespace cpu

namespace {

void check_weight(const char* op, const Tensor& x, const Tensor& weight) {
  expect(weight.rank() == 1 && x.rank() >= 1 && x.dim(-1) == weight.dim(0) && accumulation_dtype(x.dtype()) == weight.dtype(), op, "x is ",
         x, " ", x.dtype(), ", weight is ", weight, " ", weight.dtype(), "; expected x [..., D], weight [D]");
}

/// Both norms; `bias` is empty for the one without centring.
Tensor norm(Tape& tape, const char* op, const char* backward_op, const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const bool centred = static_cast<bool>(bias);
  check_weight(op, x, weight);
  expect(!centred || (bias.shape() == weight.shape() && bias.dtype() == weight.dtype()), op, "bias is ", bias, ", weight is ", weight);
  Tensor y = tape.empty(x.shape(), x.dtype());
  const double elements = static_cast<double>(x.size()), bytes = static_cast<double>(x.bytes());
  tape.run(
      op, {(centred ? 7 : 4) * elements, 2 * bytes},
      [&] { dispatch(x.dtype(), [&](auto zero) { cpu::norm<decltype(zero)>(x, weight, bias, y, eps); }); },
      [&] { cuda::norm(tape.stream(), x, weight, bias, y, eps); });
  tape.record({x, weight, bias}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget dx = t.grad_target(x), d_weight = t.grad_target(weight), d_bias = t.grad_target(bias);
    const Shape parts{t.device().targets_cuda() ? kNormParts : cpu::Blocks(x.size() / weight.size()).count, weight.size()};
    const Tensor weight_parts = d_weight ? t.empty(parts, weight.dtype()) : Tensor(),
                 bias_parts = d_bias ? t.empty(parts, weight.dtype()) : Tensor();
    t.run(
        backward_op, {(centred ? 18 : 12) * elements, 3 * bytes},
        [&] {
          dispatch(x.dtype(), [&](auto zero) {
            cpu::norm_backward<decltype(zero)>(x, weight, dy, eps, centred, dx, d_weight, d_bias, weight_parts, bias_parts);
          });
        },
        [&] {
          cuda::norm_backward(t.stream(), x, weight, dy, centred, eps, dx.tensor, dx.add, d_weight.tensor, d_weight.add, weight_parts,
                              d_bias.tensor, d_bias.add, bias_parts);
        });
  });
  return y;
}

}  // namespace

void InputNorm::check(const char* op, const Tensor& x) const {
  if (weight) check_weight(op, x, weight);
}

Tensor rms_norm(Tape& tape, const Tensor& x, const Tensor& weight, double eps) {
  return norm(tape, "rms_norm", "rms_norm.backward", x, weight, {}, eps);
}

Tensor layer_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  expect(static_cast<bool>(bias), "layer_norm", "bias is empty");
  return norm(tape, "layer_norm", "layer_norm.backward", x, weight, bias, eps);
}

}  // namespace saccade
