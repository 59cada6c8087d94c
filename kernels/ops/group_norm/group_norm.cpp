#include "kernels/ops/group_norm/group_norm.h"

#include "kernels/cpu/partial_sums.h"
#include "kernels/cpu/simd.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/group_norm/group_norm_cuda.h"
#include "kernels/ops/norm/unit_norm_cuda.h"
#include "kernels/ops/shared/slices.h"

namespace saccade {
namespace cpu {
namespace {

constexpr int64_t kTokens = 64;  ///< per task

/// Mean and 1 / sqrt(var + eps).
template <class T>
struct Moments {
  T mean, inverse;
};
template <class T>
SACCADE_INLINE Moments<T> moments(const T* x, int64_t n, T eps) {
  const T mean = lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return x[i]; }) / static_cast<T>(n);
  const T squares = lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return (x[i] - mean) * (x[i] - mean); });
  return {mean, T(1) / std::sqrt(squares / static_cast<T>(n) + eps)};
}

template <class T>
SACCADE_INLINE void group_row(const T* x, const T* weight, const T* bias, T* y, int64_t groups, int64_t n, T eps) {
  for (int64_t g = 0; g < groups; ++g, x += n, weight += n, bias += n, y += n) {
    const Moments<T> m = moments(x, n, eps);
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m.mean) * m.inverse * weight[i] + bias[i];
  }
}

/// With z = (x − mean) · inverse and e = weight · dy: dx = inverse (e − mean(e) − z mean(e z)), d_weight += dy z, d_bias += dy.
template <class T>
SACCADE_INLINE void group_row_back(const T* x, const T* weight, const T* dy, T* dx, bool add, T* d_weight, T* d_bias, int64_t groups,
                                   int64_t n, T eps) {
  for (int64_t g = 0; g < groups; ++g, x += n, weight += n, dy += n, d_weight += n, d_bias += n) {
    const Moments<T> m = moments(x, n, eps);
    for (int64_t i = 0; i < n; ++i) d_weight[i] += dy[i] * ((x[i] - m.mean) * m.inverse);
    for (int64_t i = 0; i < n; ++i) d_bias[i] += dy[i];
    if (!dx) continue;
    const T offset = lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return weight[i] * dy[i]; }) / static_cast<T>(n);
    const T slope = m.inverse / static_cast<T>(n) *
                    lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return weight[i] * dy[i] * (x[i] - m.mean); });
    for (int64_t i = 0; i < n; ++i) {
      const T d = m.inverse * (weight[i] * dy[i] - offset - (x[i] - m.mean) * m.inverse * slope);
      dx[i] = add ? dx[i] + d : d;
    }
    dx += n;
  }
}

/// 1 / max(‖x ∘ s‖, floor), and whether the norm is the larger one.
template <class T>
struct Unit {
  T inverse;
  bool normed;
};
template <class T>
SACCADE_INLINE Unit<T> unit(const T* x, const T* s, int64_t n, T floor) {
  const T norm = std::sqrt(lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return s ? x[i] * s[i] * x[i] * s[i] : x[i] * x[i]; }));
  return {T(1) / (norm > floor ? norm : floor), norm > floor};
}

template <class T>
SACCADE_INLINE void unit_row(const T* x, const T* s, T* y, int64_t n, T floor) {
  const T inverse = unit(x, s, n, floor).inverse;
  for (int64_t i = 0; i < n; ++i) y[i] = s ? x[i] * s[i] * inverse : x[i] * inverse;
}

/// dz = inverse (dy − y (y · dy)), the second term while the norm is above the floor; dx = dz s, ds += dz x.
template <class T>
SACCADE_INLINE void unit_row_back(const T* x, const T* s, const T* dy, T* dx, bool add, T* ds, int64_t n, T floor) {
  const Unit<T> u = unit(x, s, n, floor);
  const T along = lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return s ? x[i] * s[i] * dy[i] : x[i] * dy[i]; });
  const T factor = u.normed ? along * u.inverse * u.inverse : T(0);
  for (int64_t i = 0; i < n; ++i) {
    const T scale = s ? s[i] : T(1), dz = u.inverse * (dy[i] - x[i] * scale * factor);
    if (dx) dx[i] = add ? dx[i] + dz * scale : dz * scale;
    if (ds) ds[i] += dz * x[i];
  }
}

#define ENTRY_POINTS(T)                                                                                                                 \
  SACCADE_SIMD void group_token(const T* x, const T* weight, const T* bias, T* y, int64_t groups, int64_t n, T eps) {                   \
    group_row(x, weight, bias, y, groups, n, eps);                                                                                      \
  }                                                                                                                                     \
  SACCADE_SIMD void group_token_back(const T* x, const T* weight, const T* dy, T* dx, bool add, T* d_weight, T* d_bias, int64_t groups, \
                                     int64_t n, T eps) {                                                                                \
    group_row_back(x, weight, dy, dx, add, d_weight, d_bias, groups, n, eps);                                                           \
  }                                                                                                                                     \
  SACCADE_SIMD void unit_head(const T* x, const T* s, T* y, int64_t n, T floor) { unit_row(x, s, y, n, floor); }                        \
  SACCADE_SIMD void unit_head_back(const T* x, const T* s, const T* dy, T* dx, bool add, T* ds, int64_t n, T floor) {                   \
    unit_row_back(x, s, dy, dx, add, ds, n, floor);                                                                                     \
  }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

}  // namespace
}  // namespace cpu

namespace {

int64_t tasks_of(int64_t tokens) { return (tokens + cpu::kTokens - 1) / cpu::kTokens; }

/// Partial sums of parameter gradients.
int64_t parts_of(Tape& t, int64_t tokens, int64_t groups) {
  return t.device().targets_cuda() ? slice_parts(tokens, groups) : tasks_of(tokens);
}

/// Calls body(task, begin, end) for blocks of rows.
template <class Body>
void for_blocks(int64_t rows, Body body) {
  parallel_for(tasks_of(rows), [&](int64_t task) { body(task, task * cpu::kTokens, std::min(rows, (task + 1) * cpu::kTokens)); });
}

void group_norm_backward(Tape& t, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& dy, int64_t groups, double eps) {
  const int64_t width = weight.size(), rows = x.size() / width;
  const GradTarget dx = t.grad_target(x), d_weight = t.grad_target(weight), d_bias = t.grad_target(bias);
  const Tensor weights = t.empty({parts_of(t, rows, groups), width}, weight.dtype()), biases = t.empty(weights.shape(), weight.dtype());
  t.run(
      "group_norm.backward", {18.0 * static_cast<double>(x.size()), 3.0 * static_cast<double>(x.bytes())},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          for_blocks(rows, [&](int64_t task, int64_t begin, int64_t end) {
            T *part = weights.data<T>() + task * width, *bias_part = biases.data<T>() + task * width;
            std::fill_n(part, width, T(0)), std::fill_n(bias_part, width, T(0));
            for (int64_t row = begin; row < end; ++row)
              cpu::group_token_back(x.data<T>() + row * width, weight.data<T>(), dy.data<T>() + row * width,
                                    dx ? dx.tensor.data<T>() + row * width : nullptr, dx.add, part, bias_part, groups, width / groups,
                                    static_cast<T>(eps));
          });
          cpu::sum_parts<T>(weights, d_weight);
          cpu::sum_parts<T>(biases, d_bias);
        });
      },
      [&] { cuda::group_norm_backward(t.stream(), x, weight, dy, groups, eps, dx, d_weight, d_bias, weights, biases); });
}

/// Rows of x [..., N] in tokens of as many rows as `scale` has.
struct UnitShape {
  int64_t width, heads, tokens;
};

void unit_norm_backward(Tape& t, const Tensor& x, const Tensor& scale, const Tensor& dy, const UnitShape& shape, double floor) {
  const int64_t token = shape.heads * shape.width;
  const GradTarget dx = t.grad_target(x), ds = t.grad_target(scale);
  const Tensor parts = ds ? t.empty({parts_of(t, shape.tokens, shape.heads), token}, scale.dtype()) : Tensor();
  t.run(
      "unit_norm.backward", {10.0 * static_cast<double>(x.size()), 3.0 * static_cast<double>(x.bytes())},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          for_blocks(shape.tokens, [&](int64_t task, int64_t begin, int64_t end) {
            T* part = parts ? parts.data<T>() + task * token : nullptr;
            if (part) std::fill_n(part, token, T(0));
            for (int64_t row = begin * shape.heads; row < end * shape.heads; ++row) {
              const int64_t at = row * shape.width, own = row % shape.heads * shape.width;
              cpu::unit_head_back(x.data<T>() + at, scale ? scale.data<T>() + own : nullptr, dy.data<T>() + at,
                                  dx ? dx.tensor.data<T>() + at : nullptr, dx.add, part ? part + own : nullptr, shape.width,
                                  static_cast<T>(floor));
            }
          });
          cpu::sum_parts<T>(parts, ds);
        });
      },
      [&] {
        cuda::unit_norm_backward(t.stream(), {x, scale, 0, floor}, dy, dx, ds, parts);
      });
}

}  // namespace

Tensor group_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t groups, double eps) {
  expect(weight.rank() == 1 && x.rank() >= 1 && x.dim(-1) == weight.dim(0) && bias.shape() == weight.shape(), "group_norm", "x is ", x,
         ", weight is ", weight, ", bias is ", bias, "; expected x [..., D], weight, bias [D]");
  expect(groups > 0 && weight.size() % groups == 0, "group_norm", groups, " groups do not divide ", weight);
  const int64_t width = weight.size(), rows = x.size() / width;
  Tensor y = tape.empty(x.shape(), x.dtype());
  tape.run(
      "group_norm", {7.0 * static_cast<double>(x.size()), 2.0 * static_cast<double>(x.bytes())},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          for_blocks(rows, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row)
              cpu::group_token(x.data<T>() + row * width, weight.data<T>(), bias.data<T>(), y.data<T>() + row * width, groups,
                               width / groups, static_cast<T>(eps));
          });
        });
      },
      [&] { cuda::group_norm(tape.stream(), x, weight, bias, groups, eps, y); });
  tape.record({x, weight, bias}, {&y}, [=](Tape& t) { group_norm_backward(t, x, weight, bias, t.grad(y), groups, eps); });
  return y;
}

Tensor unit_norm(Tape& tape, const Tensor& x, const Tensor& scale, double floor) {
  const int64_t width = x.dim(-1), rows = x.size() / width, heads = scale ? scale.size() / width : 1;
  expect(!scale || (scale.dim(-1) == width && rows % heads == 0), "unit_norm", "scale is ", scale, ", x is ", x);
  const UnitShape shape{width, heads, rows / heads};
  Tensor y = tape.empty(x.shape(), x.dtype());
  tape.run(
      "unit_norm", {5.0 * static_cast<double>(x.size()), 2.0 * static_cast<double>(x.bytes())},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          for_blocks(shape.tokens, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t row = begin * heads; row < end * heads; ++row)
              cpu::unit_head(x.data<T>() + row * width, scale ? scale.data<T>() + row % heads * width : nullptr, y.data<T>() + row * width,
                             width, static_cast<T>(floor));
          });
        });
      },
      [&] {
        cuda::unit_norm(tape.stream(), {x, scale, 0, floor}, y);
      });
  tape.record({x, scale}, {&y}, [=](Tape& t) { unit_norm_backward(t, x, scale, t.grad(y), shape, floor); });
  return y;
}

}  // namespace saccade
