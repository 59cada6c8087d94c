#include "kernels/ops/mamba1/cpu_linear_form.h"

#include <algorithm>

#include "kernels/cpu/partial_sums.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/attention/head_shape.h"
#include "kernels/ops/mamba1/cpu_rows.h"

namespace saccade::cpu {
namespace {

/// Rows are tokens, D wide.
template <class T>
struct LinearFormTokens {
  int64_t width;
  const T *u, *raw, *z, *skip, *bias, *shared, *shared_bias, *alpha;  ///< the last three null without decay
  T *step, *v, *g;
};

template <class T>
LinearFormTokens<T> rows_of(const Mamba1Scan& in, const LinearForm& form) {
  const auto at = [](const Tensor& x) { return x ? x.data<T>() : nullptr; };
  return {in.u.dim(2),      at(in.u),           at(in.dt),    at(in.z),      at(in.skip), at(in.dt_bias),
          at(in.shared_dt), at(in.shared_bias), at(in.a_log), at(form.step), at(form.v),  at(form.g)};
}

template <class T>
SACCADE_INLINE void prepare_rows(const LinearFormTokens<T>& r, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * r.width;
    step_row(r.raw + at, r.bias, r.u + at, r.width, r.step + at, r.v + at);
    if (r.g) r.g[row] = -fast_exp(r.alpha[0]) * softplus(r.shared[row] + r.shared_bias[0]);
  }
}

template <class T>
SACCADE_INLINE void gate_rows(const LinearFormTokens<T>& r, int64_t first, int64_t last, const T* o, T* y) {
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * r.width;
    gate_row(o + at, r.skip, r.u + at, r.z + at, r.width, y + at);
  }
}

/// gated = dy silu(z),  dz = dy (o + D u) silu'(z); `made` is a scratch row.
template <class T>
SACCADE_INLINE void gate_backward_rows(const LinearFormTokens<T>& r, int64_t first, int64_t last, const T* o, const T* dy, T* gated, T* dz,
                                       bool add, T* made) {
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * r.width;
    gated_row(dy + at, r.z + at, r.width, gated + at);
    gate_slope_row(dy + at, o + at, r.skip, r.u + at, r.z + at, r.width, made);
    put_row(made, r.width, add, dz ? dz + at : nullptr);
  }
}

template <class T>
struct Backward {
  const T *gated, *dv, *dg;
  T *du, *d_raw, *d_shared;
  bool add_u, add_raw, add_shared;
  T* parts;  ///< sums of one task: bias and D [D] each, then α and b
  T* made;   ///< a scratch row
};

template <class T>
SACCADE_INLINE void backward_rows(const LinearFormTokens<T>& r, const Backward<T>& b, int64_t first, int64_t last) {
  const int64_t width = r.width;
  T *d_bias = b.parts, *d_skip = b.parts + width, *d_one = b.parts + 2 * width;
  std::fill(b.parts, b.parts + 2 * width + 2, T(0));
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * width;
    const T *u = r.u + at, *gated = b.gated + at;
    step_slope_row(u, b.dv + at, r.raw + at, r.bias, width, b.made);
    put_row(b.made, width, b.add_raw, b.d_raw ? b.d_raw + at : nullptr);
    put_row(b.made, width, true, d_bias);
    add_products(gated, u, width, d_skip);
    input_slope_row(r.skip, gated, r.step + at, b.dv + at, width, b.made);
    put_row(b.made, width, b.add_u, b.du ? b.du + at : nullptr);
    if (!r.g) continue;
    const T slope = -fast_exp(r.alpha[0]) * b.dg[row] * sigmoid(r.shared[row] + r.shared_bias[0]);
    d_one[0] += r.g[row] * b.dg[row], d_one[1] += slope;
    if (b.d_shared) b.d_shared[row] = (b.add_shared ? b.d_shared[row] : T(0)) + slope;
  }
}

#define ENTRY_POINTS(T)                                                                                                                    \
  SACCADE_SIMD void prepare_run(const LinearFormTokens<T>& r, int64_t first, int64_t last) { prepare_rows(r, first, last); }               \
  SACCADE_SIMD void gate(const LinearFormTokens<T>& r, int64_t first, int64_t last, const T* o, T* y) { gate_rows(r, first, last, o, y); } \
  SACCADE_SIMD void gate_backward(const LinearFormTokens<T>& r, int64_t first, int64_t last, const T* o, const T* dy, T* gated, T* dz,     \
                                  bool add, T* made) {                                                                                     \
    gate_backward_rows(r, first, last, o, dy, gated, dz, add, made);                                                                       \
  }                                                                                                                                        \
  SACCADE_SIMD void backward(const LinearFormTokens<T>& r, const Backward<T>& b, int64_t first, int64_t last) {                            \
    backward_rows(r, b, first, last);                                                                                                      \
  }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

/// [B, rows, columns] → [B, columns, rows]
template <class T>
void transpose_states(const Tensor& from, int64_t rows, int64_t columns, const Tensor& to) {
  const int64_t batch = from.size() / (rows * columns);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) to.data<T>()[(b * columns + j) * rows + i] = from.data<T>()[(b * rows + i) * columns + j];
}

int64_t tokens(const Mamba1Scan& in) { return in.u.dim(0) * in.u.dim(1); }

}  // namespace

ScalarDecay chunk_form(const Mamba1Scan& in, const LinearForm& form) {
  const Shape pairs{in.b.dim(0), in.b.dim(1), 1, in.b.dim(2)};
  return {in.c.reshape(pairs), in.b.reshape(pairs), form.v.reshape({in.u.dim(0), in.u.dim(1), 1, in.u.dim(2)}), form.g, form.start};
}

template <class T>
void prepare(const Mamba1Scan& in, const LinearForm& form) {
  const LinearFormTokens<T> rows = rows_of<T>(in, form);
  parallel_ranges(tokens(in), kLinearRows, [&](int64_t first, int64_t last) { prepare_run(rows, first, last); });
  if (form.start) transpose_states<T>(in.state.start, in.u.dim(2), in.b.dim(2), form.start);
}

template <class T>
void linear_scan(const Mamba1Scan& in, const LinearForm& form, const Tensor& states, const Tensor& o, const Tensor& y, const Tensor& end) {
  const ScalarDecay chunks = chunk_form(in, form);
  scalar_decay<T>(chunks, states, o);
  const LinearFormTokens<T> rows = rows_of<T>(in, form);
  parallel_ranges(tokens(in), kLinearRows, [&](int64_t first, int64_t last) { gate(rows, first, last, o.data<T>(), y.data<T>()); });
  if (!end) return;
  const int64_t size = in.u.dim(2) * in.b.dim(2), last = states.dim(1) - 1;
  for (int64_t b = 0; b < in.u.dim(0); ++b) {
    const T* from = states.data<T>() + (b * (last + 1) + last) * size;  // [N, D]
    for (int64_t n = 0; n < in.b.dim(2); ++n)
      for (int64_t d = 0; d < in.u.dim(2); ++d) end.data<T>()[b * size + d * in.b.dim(2) + n] = from[n * in.u.dim(2) + d];
  }
}

template <class T>
void linear_scan_backward(const Mamba1Scan& in, const LinearForm& form, const LinearGradients& out) {
  const LinearFormTokens<T> rows = rows_of<T>(in, form);
  const ScalarDecay chunks = chunk_form(in, form);
  const auto at = [](const GradTarget& target) { return target ? target.tensor.data<T>() : nullptr; };
  const int64_t width = in.u.dim(2), keys = in.b.dim(2);
  parallel_ranges(tokens(in), kLinearRows, [&](int64_t first, int64_t last) {
    gate_backward(rows, first, last, out.o.data<T>(), out.dy.data<T>(), out.gated.data<T>(), at(out.z), out.z.add, scratch<T, 26>(width));
  });
  if (out.d_end) transpose_states<T>(out.d_end, width, keys, out.chunk_end);
  scalar_decay<T>(chunks, out.states, {});
  scalar_decay_backward<T>(chunks, out.states, {out.gated, out.chunk_end, out.d_states, out.c, out.b, out.dv, out.dg, out.chunk_start});
  if (out.d_start) transpose_states<T>(out.chunk_start, keys, width, out.d_start);
  parallel_ranges(tokens(in), kLinearRows, [&](int64_t first, int64_t last) {
    backward(
        rows,
        {out.gated.data<T>(), out.dv.data<T>(), out.dg ? out.dg.data<T>() : nullptr, at(out.u), at(out.dt), at(out.shared_dt), out.u.add,
         out.dt.add, out.shared_dt.add, out.parts.data<T>() + first / kLinearRows * out.parts.dim(1), scratch<T, 26>(width)},
        first, last);
  });
  sum_parts<T>(out.parts, 0, out.dt_bias);
  sum_parts<T>(out.parts, width, out.skip);
  sum_parts<T>(out.parts, 2 * width, out.a_log);
  sum_parts<T>(out.parts, 2 * width + 1, out.shared_bias);
}

#define INSTANTIATE(T)                                                                                                            \
  template void prepare<T>(const Mamba1Scan&, const LinearForm&);                                                                 \
  template void linear_scan<T>(const Mamba1Scan&, const LinearForm&, const Tensor&, const Tensor&, const Tensor&, const Tensor&); \
  template void linear_scan_backward<T>(const Mamba1Scan&, const LinearForm&, const LinearGradients&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace saccade::cpu
