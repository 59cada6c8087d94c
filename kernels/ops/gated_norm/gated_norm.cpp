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

/// Rows are the slices of which statistics are taken: n wide, `period` of them until the gain repeats.
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
SACCADE_INLINE void forward_rows(const Slices& s, const T* x, const T* z, const T* gain, T* y, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const T *in = x + row * s.n, *gate = z + row * s.n, *g = gain + row % s.period * s.n;
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

/// Gradients of one task; null pointers: not wanted. d_gain [period · n] is overwritten.
template <class T>
struct Backward {
  const T *x, *z, *gain, *dy;
  T *dx, *dz;
  bool add_x, add_z;
  T *d_gain, *rows;  ///< rows: scratch, 3 n
};

// Loops of one statement with __restrict pointers: otherwise they do not vectorise.

template <class T>
SACCADE_INLINE void gate_row(const T* __restrict__ x, const T* __restrict__ z, int64_t n, T* __restrict__ to) {
  for (int64_t i = 0; i < n; ++i) to[i] = x[i] * silu(z[i]);
}
template <class T>
SACCADE_INLINE void norm_slope_row(const T* __restrict__ e, const T* __restrict__ gain, const T* __restrict__ u, T r, T mean, int64_t n,
                                   T* __restrict__ to) {
  for (int64_t i = 0; i < n; ++i) to[i] = r * (e[i] * gain[i] - u[i] * mean);
}
template <class T>
SACCADE_INLINE void gate_slope_row(const T* __restrict__ x, const T* __restrict__ d, const T* __restrict__ z, int64_t n,
                                   T* __restrict__ to) {
  for (int64_t i = 0; i < n; ++i) to[i] = x[i] * d[i] * silu_slope(z[i]);
}
template <class T>
SACCADE_INLINE void scale_row(const T* __restrict__ x, const T* __restrict__ gain, T r, int64_t n, T* __restrict__ to) {
  for (int64_t i = 0; i < n; ++i) to[i] = x[i] * r * gain[i];
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

/// With u the normed row and e = d_u:  d_u' = r (e ∘ gain − u r² mean(e ∘ gain ∘ u)),  d_gain = Σ e ∘ u r
///   gate first: u = x silu(z), e = d_y;    gate last: u = x, e = d_y silu(z), dz = d_y x r gain silu'(z)
template <bool kGateFirst, class T>
SACCADE_INLINE void backward_rows(const Slices& s, const Backward<T>& b, int64_t first, int64_t last) {
  const int64_t n = s.n;
  T *gated = b.rows, *d = b.rows + n, *made = b.rows + 2 * n;
  if (b.d_gain) std::fill(b.d_gain, b.d_gain + s.period * n, T(0));
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * n, slice = row % s.period * n;
    const T *x = b.x + at, *z = b.z + at, *dy = b.dy + at, *gain = b.gain + slice;
    gate_row(kGateFirst ? x : dy, z, n, gated);
    const T *u = kGateFirst ? gated : x, *e = kGateFirst ? dy : gated;
    const T r = inverse_root(u, n, s.eps);
    if (b.d_gain) add_products(e, u, r, n, b.d_gain + slice);
    const T mean = lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return e[i] * gain[i] * u[i]; }) * r * r / static_cast<T>(n);
    norm_slope_row(e, gain, u, r, mean, n, d);
    if (b.dz) {
      if (!kGateFirst) scale_row(x, gain, r, n, made);
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

#define ENTRY_POINTS(T)                                                                                                  \
  SACCADE_SIMD void forward(const Slices& s, const T* x, const T* z, const T* gain, T* y, int64_t first, int64_t last) { \
    forward_rows(s, x, z, gain, y, first, last);                                                                         \
  }                                                                                                                      \
  SACCADE_SIMD void backward(const Slices& s, const Backward<T>& b, int64_t first, int64_t last) {                       \
    s.gate_first ? backward_rows<true>(s, b, first, last) : backward_rows<false>(s, b, first, last);                     \
  }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

template <class T>
void gated_norm(const Slices& s, const Tensor& x, const Tensor& z, const Tensor& gain, const Tensor& y) {
  parallel_ranges(s.count, s.rows_a_task(),
                  [&](int64_t first, int64_t last) { forward(s, x.data<T>(), z.data<T>(), gain.data<T>(), y.data<T>(), first, last); });
}

template <class T>
void gated_norm_backward(const Slices& s, const Tensor& x, const Tensor& z, const Tensor& gain, const Tensor& dy, const GradTarget& dx,
                         const GradTarget& dz, const GradTarget& d_gain, const Tensor& parts) {
  parallel_for(s.tasks(), [&](int64_t task) {
    const int64_t first = task * s.rows_a_task(), last = std::min(s.count, first + s.rows_a_task());
    T* rows = scratch<T, 21>(3 * s.n);
    const auto at = [](const GradTarget& target) { return target ? target.tensor.data<T>() : nullptr; };
    backward(s,
             {x.data<T>(), z.data<T>(), gain.data<T>(), dy.data<T>(), at(dx), at(dz), dx.add, dz.add,
              parts ? parts.data<T>() + task * gain.size() : nullptr, rows},
             first, last);
  });
  if (parts) sum_parts<T>(parts, d_gain);
}

}  // namespace
}  // namespace cpu

namespace {

Tensor gated_norm(Tape& tape, const char* op, const char* backward_op, const Tensor& x, const Tensor& z, const Tensor& gain, int64_t groups,
                  bool gate_first, double eps) {
  expect(x.shape() == z.shape() && x.dtype() == z.dtype(), op, "x is ", x, ", z is ", z);
  expect(gain.rank() == 1 && gain.dim(0) == x.dim(-1) && gain.dtype() == accumulation_dtype(x.dtype()), op, "x is ", x, ", gain is ", gain,
         "; expected x [..., D], gain [D]");
  expect(groups > 0 && gain.size() % groups == 0, op, "gain is ", gain, ", which does not divide into ", groups, " groups");
  const cpu::Slices slices{gain.size() / groups, groups, x.size() / gain.size() * groups, gate_first, eps};
  Tensor y = tape.empty(x.shape(), x.dtype());
  const double elements = static_cast<double>(x.size()), bytes = static_cast<double>(x.bytes());
  tape.run(
      op, {9 * elements, 3 * bytes},
      [&] { dispatch(x.dtype(), [&](auto zero) { cpu::gated_norm<decltype(zero)>(slices, x, z, gain, y); }); },
      [&] {
        cuda::gated_norm(tape.stream(), {x, z, gain, groups, gate_first, eps}, y);
      });
  tape.record({x, z, gain}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget dx = t.grad_target(x), dz = t.grad_target(z), d_gain = t.grad_target(gain);
    const int64_t sums = t.device().targets_cuda() ? slice_parts(x.size() / gain.size(), groups) : slices.tasks();
    const Tensor parts = d_gain ? t.empty({sums, gain.size()}, gain.dtype()) : Tensor();
    t.run(
        backward_op, {28 * elements, 5 * bytes},
        [&] {
          dispatch(x.dtype(), [&](auto zero) { cpu::gated_norm_backward<decltype(zero)>(slices, x, z, gain, dy, dx, dz, d_gain, parts); });
        },
        [&] {
          cuda::gated_norm_backward(t.stream(), {x, z, gain, groups, gate_first, eps}, dy, dx, dz, d_gain, parts);
        });
  });
  return y;
}

}  // namespace

Tensor rms_norm_after_gate(Tape& tape, const Tensor& x, const Tensor& z, const Tensor& gain, int64_t groups, double eps) {
  return gated_norm(tape, "rms_norm_after_gate", "rms_norm_after_gate.backward", x, z, gain, groups, true, eps);
}

Tensor rms_norm_before_gate(Tape& tape, const Tensor& x, const Tensor& z, const Tensor& gain, double eps) {
  return gated_norm(tape, "rms_norm_before_gate", "rms_norm_before_gate.backward", x, z, gain, 1, false, eps);
}

}  // namespace saccade
