#include "kernels/ops/gated_norm/gated_norm.h"

#include <algorithm>

#include "kernels/cpu/partial_sums.h"
#include "kernels/cpu/smooth.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/attention/head_shape.h"
#include "kernels/ops/gated_norm/gated_norm_cuda.h"
#include "kernels/ops/shared/slices.h"

namespace saccade {
namespace cpu {
namespace {

/// Rows are the slices of which statistics are taken: n wide, `period` of them until the weight repeats.
struct Slices {
  int64_t n, period, count;
  bool gate_first;
  double eps;
  int64_t rows_a_task() const { return std::max<int64_t>(32, (count / period + 63) / 64) * period; }
  int64_t tasks() const { return (count + rows_a_task() - 1) / rows_a_task(); }
};

template <class T>
SACCADE_INLINE T inverse_root(const T* u, int64_t n, double eps) {
  const T squares = lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return u[i] * u[i]; });
  return T(1) / std::sqrt(squares / static_cast<T>(n) + static_cast<T>(eps));
}

template <class T>
SACCADE_INLINE void forward_rows(const Slices& s, const T* x, const T* z, const T* weight, T* y, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const T *in = x + row * s.n, *gate = z + row * s.n, *g = weight + row % s.period * s.n;
    T* out = y + row * s.n;
    if (s.gate_first) {
      for (int64_t i = 0; i < s.n; ++i) out[i] = in[i] * silu(gate[i]);
      const T r = inverse_root(out, s.n, s.eps);
      for (int64_t i = 0; i < s.n; ++i) out[i] *= r * g[i];
    } else {
      const T r = inverse_root(in, s.n, s.eps);
      for (int64_t i = 0; i < s.n; ++i) out[i] = in[i] * r * g[i] * silu(gate[i]);
    }
  }
}

/// Gradients of one task; null pointers: not wanted. d_weight [period · n] is overwritten.
template <class T>
struct Backward {
  const T *x, *z, *weight, *dy;
  T *dx, *dz;
  bool add_x, add_z;
  T *d_weight, *rows;  ///< rows: scratch, 3 n
};

// Loops of one statement with __restrict pointers: otherwise they do not vectorise.

template <class T>
SACCADE_INLINE void gate_row(const T* __restrict__ x, const T* __restrict__ z, int64_t n, T* __restrict__ to) {
  for (int64_t i = 0; i < n; ++i) to[i] = x[i] * silu(z[i]);
}
template <class T>
SACCADE_INLINE void norm_slope_row(const T* __restrict__ e, const T* __restrict__ weight, const T* __restrict__ u, T r, T mean, int64_t n,
                                   T* __restrict__ to) {
  for (int64_t i = 0; i < n; ++i) to[i] = r * (e[i] * weight[i] - u[i] * mean);
}
template <class T>
SACCADE_INLINE void gate_slope_row(const T* __restrict__ x, const T* __restrict__ d, const T* __restrict__ z, int64_t n,
                                   T* __restrict__ to) {
  for (int64_t i = 0; i < n; ++i) to[i] = x[i] * d[i] * silu_slope(z[i]);
}
template <class T>
SACCADE_INLINE void scale_row(const T* __restrict__ x, const T* __restrict__ weight, T r, int64_t n, T* __restrict__ to) {
  for (int64_t i = 0; i < n; ++i) to[i] = x[i] * r * weight[i];
}
template <class T>
SACCADE_INLINE void add_products(const T* __restrict__ a, const T* __restrict__ b, T factor, int64_t n, T* __restrict__ to) {
  for (int64_t i = 0; i < n; ++i) to[i] += a[i] * b[i] * factor;
}
template <class T>
SACCADE_INLINE void put_row(const T* __restrict__ from, int64_t n, bool add, T* __restrict__ to) {
  if (add)
    for (int64_t i = 0; i < n; ++i) to[i] += from[i];
  else
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

/// With u the normed row and e = d_u:  d_u' = r (e ∘ weight − u r² mean(e ∘ weight ∘ u)),  d_weight = Σ e ∘ u r
///   gate first: u = x silu(z), e = d_y;    gate last: u = x, e = d_y silu(z), dz = d_y x r weight silu'(z)
template <bool kGateFirst, class T>
SACCADE_INLINE void backward_rows(const Slices& s, const Backward<T>& b, int64_t first, int64_t last) {
  const int64_t n = s.n;
  T *gated = b.rows, *d = b.rows + n, *made = b.rows + 2 * n;
  if (b.d_weight) std::fill(b.d_weight, b.d_weight + s.period * n, T(0));
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * n, slice = row % s.period * n;
    const T *x = b.x + at, *z = b.z + at, *dy = b.dy + at, *weight = b.weight + slice;
    gate_row(kGateFirst ? x : dy, z, n, gated);
    const T *u = kGateFirst ? gated : x, *e = kGateFirst ? dy : gated;
    const T r = inverse_root(u, n, s.eps);
    if (b.d_weight) add_products(e, u, r, n, b.d_weight + slice);
    const T mean = lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return e[i] * weight[i] * u[i]; }) * r * r / static_cast<T>(n);
    norm_slope_row(e, weight, u, r, mean, n, d);
    if (b.dz) {
      if (!kGateFirst) scale_row(x, weight, r, n, made);
      const T *factor = kGateFirst ? x : made, *slope = kGateFirst ? d : dy;
      gate_slope_row(factor, slope, z, n, gated);
      put_row(gated, n, b.add_z, b.dz + at);
    }
    if (!b.dx) continue;
    if (kGateFirst) {
      gate_row(d, z, n, made);
      put_row(made, n, b.add_x, b.dx + at);
    } else {
      put_row(d, n, b.add_x, b.dx + at);
    }
  }
}

#define ENTRY_POINTS(T)                                                                                                    \
  SACCADE_SIMD void forward(const Slices& s, const T* x, const T* z, const T* weight, T* y, int64_t first, int64_t last) { \
    forward_rows(s, x, z, weight, y, first, last);                                                                         \
  }                                                                                                                        \
  SACCADE_SIMD void backward(const Slices& s, const Backward<T>& b, int64_t first, int64_t last) {                         \
    s.gate_first ? backward_rows<true>(s, b, first, last) : backward_rows<false>(s, b, first, last);                       \
  }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

template <class T>
void gated_norm(const Slices& s, const Tensor& x, const Tensor& z, const Tensor& weight, const Tensor& y) {
  parallel_ranges(s.count, s.rows_a_task(),
                  [&](int64_t first, int64_t last) { forward(s, x.data<T>(), z.data<T>(), weight.data<T>(), y.data<T>(), first, last); });
}

template <class T>
void gated_norm_backward(const Slices& s, const Tensor& x, const Tensor& z, const Tensor& weight, const Tensor& dy, const GradTarget& dx,
                         const GradTarget& dz, const GradTarget& d_weight, const Tensor& parts) {
  parallel_for(s.tasks(), [&](int64_t task) {
    const int64_t first = task * s.rows_a_task(), last = std::min(s.count, first + s.rows_a_task());
    T* rows = scratch<T, 21>(3 * s.n);
    const auto at = [](const GradTarget& target) { return target ? target.tensor.data<T>() : nullptr; };
    backward(s,
             {x.data<T>(), z.data<T>(), weight.data<T>(), dy.data<T>(), at(dx), at(dz), dx.add, dz.add,
              parts ? parts.data<T>() + task * weight.size() : nullptr, rows},
             first, last);
  });
  if (parts) sum_parts<T>(parts, d_weight);
}

}  // namespace
}  // namespace cpu

namespace {

Tensor gated_norm(Tape& tape, const char* op, const char* backward_op, const Tensor& x, const Tensor& z, const Tensor& weight,
                  int64_t groups, bool gate_first, double eps) {
  expect(x.shape() == z.shape() && x.dtype() == z.dtype(), op, "x is ", x, ", z is ", z);
  expect(weight.rank() == 1 && weight.dim(0) == x.dim(-1) && weight.dtype() == accumulation_dtype(x.dtype()), op, "x is ", x,
         ", weight is ", weight, "; expected x [..., D], weight [D]");
  expect(groups > 0 && weight.size() % groups == 0, op, "weight is ", weight, ", which does not divide into ", groups, " groups");
  const cpu::Slices slices{weight.size() / groups, groups, x.size() / weight.size() * groups, gate_first, eps};
  Tensor y = tape.empty(x.shape(), x.dtype());
  const double elements = static_cast<double>(x.size()), bytes = static_cast<double>(x.bytes());
  tape.run(
      op, {9 * elements, 3 * bytes},
      [&] { dispatch(x.dtype(), [&](auto zero) { cpu::gated_norm<decltype(zero)>(slices, x, z, weight, y); }); },
      [&] {
        cuda::gated_norm(tape.stream(), {x, z, weight, groups, gate_first, eps}, y);
      });
  tape.record({x, z, weight}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget dx = t.grad_target(x), dz = t.grad_target(z), d_weight = t.grad_target(weight);
    const int64_t sums = t.device().targets_cuda() ? slice_parts(x.size() / weight.size(), groups) : slices.tasks();
    const Tensor parts = d_weight ? t.empty({sums, weight.size()}, weight.dtype()) : Tensor();
    t.run(
        backward_op, {28 * elements, 5 * bytes},
        [&] {
          dispatch(x.dtype(),
                   [&](auto zero) { cpu::gated_norm_backward<decltype(zero)>(slices, x, z, weight, dy, dx, dz, d_weight, parts); });
        },
        [&] {
          cuda::gated_norm_backward(t.stream(), {x, z, weight, groups, gate_first, eps}, dy, dx, dz, d_weight, parts);
        });
  });
  return y;
}

}  // namespace

Tensor rms_norm_after_gate(Tape& tape, const Tensor& x, const Tensor& z, const Tensor& weight, int64_t groups, double eps) {
  return gated_norm(tape, "rms_norm_after_gate", "rms_norm_after_gate.backward", x, z, weight, groups, true, eps);
}

Tensor rms_norm_before_gate(Tape& tape, const Tensor& x, const Tensor& z, const Tensor& weight, double eps) {
  return gated_norm(tape, "rms_norm_before_gate", "rms_norm_before_gate.backward", x, z, weight, 1, false, eps);
}

}  // namespace saccade
