#include "kernels/ops/mamba2/mamba2_ssd.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/partial_sums.h"
#include "kernels/cpu/smooth.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/mamba2/mamba2_ssd_cuda.h"
#include "kernels/ops/scalar_decay/scalar_decay.h"

namespace saccade {
namespace cpu {
namespace {

enum class Decay { full, one, none };

Decay decay_of(const Mamba2Ssd& in) { return in.shared_dt ? Decay::one : in.a_log ? Decay::full : Decay::none; }

/// Sizes and addresses of the parts outside the chunk form. Rows are tokens.
template <class T>
struct SsdTokens {
  int64_t heads, width;
  Decay decay;
  const T *x, *raw, *bias, *skip, *a_log, *shared, *shared_bias;
  T *step, *g, *v;  ///< Δ [rows, H], log decays [rows, H or 1], Δ x [rows, H, P]
};

/// Δ, g and v of the rows from first on.
template <class T>
SACCADE_INLINE void prepare_rows(const SsdTokens<T>& r, int64_t first, int64_t last) {
  const int64_t H = r.heads, P = r.width;
  for (int64_t row = first; row < last; ++row) {
    for (int64_t h = 0; h < H; ++h) r.step[row * H + h] = softplus(r.raw[row * H + h] + r.bias[h]);
    if (r.decay == Decay::full)
      for (int64_t h = 0; h < H; ++h) r.g[row * H + h] = -fast_exp(r.a_log[h]) * r.step[row * H + h];
    if (r.decay == Decay::one) r.g[row] = -fast_exp(r.a_log[0]) * softplus(r.shared[row] + r.shared_bias[0]);
    for (int64_t h = 0; h < H; ++h) {
      const T step = r.step[row * H + h], *x = r.x + (row * H + h) * P;
      T* v = r.v + (row * H + h) * P;
      for (int64_t p = 0; p < P; ++p) v[p] = step * x[p];
    }
  }
}

template <class T>
SACCADE_INLINE void skip_rows(const SsdTokens<T>& r, int64_t first, int64_t last, T* y) {
  for (int64_t i = first * r.heads; i < last * r.heads; ++i) {
    const T skip = r.skip[i % r.heads], *x = r.x + i * r.width;
    for (int64_t p = 0; p < r.width; ++p) y[i * r.width + p] += skip * x[p];
  }
}

/// Gradients that come out of the chunk form (dv, dg) and in (dy), and where they go on to; null: not wanted.
template <class T>
struct Gradients {
  const T *dy, *dv, *dg;
  int64_t dg_columns;
  T *dx, *d_raw, *d_shared;
  bool add_x, add_raw, add_shared;
  T* parts;  ///< sums of one task: bias, skip and a_log [H] each, then of a shared decay α and b
};

template <class T>
SACCADE_INLINE void backward_rows(const SsdTokens<T>& r, const Gradients<T>& d, int64_t first, int64_t last) {
  const int64_t H = r.heads, P = r.width;
  T *d_bias = d.parts, *d_skip = d.parts + H, *d_a = d.parts + 2 * H, *d_one = d.parts + 3 * H;
  std::fill(d.parts, d.parts + 3 * H + 2, T(0));
  for (int64_t row = first; row < last; ++row) {
    for (int64_t h = 0; h < H; ++h) {
      const int64_t i = row * H + h;
      const T *x = r.x + i * P, *dv = d.dv + i * P, *dy = d.dy + i * P, step = r.step[i], skip = r.skip[h];
      T d_step = lane_sum<T>(P, [&](int64_t p) SACCADE_INLINE_LAMBDA { return x[p] * dv[p]; });
      d_skip[h] += lane_sum<T>(P, [&](int64_t p) SACCADE_INLINE_LAMBDA { return x[p] * dy[p]; });
      if (r.decay == Decay::full) {
        d_step -= fast_exp(r.a_log[h]) * d.dg[i];
        d_a[h] += r.g[i] * d.dg[i];
      }
      const T d_raw = d_step * sigmoid(r.raw[i] + r.bias[h]);
      d_bias[h] += d_raw;
      if (d.d_raw) d.d_raw[i] = (d.add_raw ? d.d_raw[i] : T(0)) + d_raw;
      T* dx = d.dx ? d.dx + i * P : nullptr;
      if (dx && d.add_x)
        for (int64_t p = 0; p < P; ++p) dx[p] += step * dv[p] + skip * dy[p];
      else if (dx)
        for (int64_t p = 0; p < P; ++p) dx[p] = step * dv[p] + skip * dy[p];
    }
    if (r.decay != Decay::one) continue;
    T dg = 0;
    for (int64_t c = 0; c < d.dg_columns; ++c) dg += d.dg[row * d.dg_columns + c];
    const T d_shared = -fast_exp(r.a_log[0]) * dg * sigmoid(r.shared[row] + r.shared_bias[0]);
    d_one[0] += r.g[row] * dg, d_one[1] += d_shared;
    if (d.d_shared) d.d_shared[row] = (d.add_shared ? d.d_shared[row] : T(0)) + d_shared;
  }
}

#define ENTRY_POINTS(T)                                                                                                  \
  SACCADE_SIMD void prepare(const SsdTokens<T>& r, int64_t first, int64_t last) { prepare_rows(r, first, last); }        \
  SACCADE_SIMD void add_skip(const SsdTokens<T>& r, int64_t first, int64_t last, T* y) { skip_rows(r, first, last, y); } \
  SACCADE_SIMD void backward(const SsdTokens<T>& r, const Gradients<T>& d, int64_t first, int64_t last) {                \
    backward_rows(r, d, first, last);                                                                                    \
  }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

constexpr int64_t kRows = 64;  ///< per task

}  // namespace
}  // namespace cpu

namespace {

/// What is computed from the inputs before the chunk form.
struct Prepared {
  Tensor step, g, v;
};

template <class T>
cpu::SsdTokens<T> rows_of(const Mamba2Ssd& in, const Prepared& p) {
  const auto at = [](const Tensor& x) { return x ? x.data<T>() : nullptr; };
  return {in.x.dim(2),  in.x.dim(3),      cpu::decay_of(in),  at(in.x),   at(in.dt), at(in.dt_bias), at(in.skip),
          at(in.a_log), at(in.shared_dt), at(in.shared_bias), at(p.step), at(p.g),   at(p.v)};
}

void check(const Mamba2Ssd& in) {
  const char* op = "mamba2_ssd";
  expect(in.x.rank() == 4 && in.dt.rank() == 3 && in.b.rank() == 4, op, "x is ", in.x, ", dt is ", in.dt, ", B is ", in.b,
         "; expected x [B, T, H, P], dt [B, T, H], B [B, T, G, N]");
  const int64_t batch = in.x.dim(0), length = in.x.dim(1), heads = in.x.dim(2);
  expect(in.dt.shape() == Shape{batch, length, heads}, op, "x is ", in.x, ", dt is ", in.dt);
  expect(in.b.dim(0) == batch && in.b.dim(1) == length && in.b.shape() == in.c.shape(), op, "x is ", in.x, ", B is ", in.b, ", C is ",
         in.c);
  expect(heads % in.b.dim(2) == 0, op, "B is ", in.b, ": its groups do not divide the heads of x ", in.x);
  expect(in.skip.shape() == Shape{heads} && in.dt_bias.shape() == Shape{heads}, op, "D is ", in.skip, ", dt_bias is ", in.dt_bias,
         ", x is ", in.x);
  if (in.shared_dt)
    expect(in.shared_dt.size() == batch * length && in.a_log.size() == 1 && in.shared_bias.size() == 1, op, "shared_dt is ", in.shared_dt,
           ", a_log is ", in.a_log, ", shared_bias is ", in.shared_bias);
  else
    expect(!in.a_log || in.a_log.shape() == Shape{heads}, op, "a_log is ", in.a_log, ", x is ", in.x);
  expect(!in.state.start || in.state.start.shape() == Shape{batch, heads, in.b.dim(3), in.x.dim(3)}, op, "state is ", in.state.start,
         ", x is ", in.x, ", B is ", in.b);
}

Prepared make_workspace(Tape& tape, const Mamba2Ssd& in) {
  const DType dtype = accumulation_dtype(in.x.dtype());
  Prepared p{tape.empty(in.dt.shape(), dtype), {}, tape.empty(in.x.shape(), in.x.dtype())};
  if (in.a_log) p.g = tape.empty(in.shared_dt ? Shape{in.x.dim(0), in.x.dim(1), 1} : in.dt.shape(), dtype);
  return p;
}

template <class T>
void prepare(const Mamba2Ssd& in, const Prepared& p) {
  const auto rows = rows_of<T>(in, p);
  parallel_ranges(in.x.dim(0) * in.x.dim(1), cpu::kRows, [&](int64_t first, int64_t last) { cpu::prepare(rows, first, last); });
}

/// The chunk form as far as its costs are concerned.
cpu::ScalarDecay sizes(const Mamba2Ssd& in) { return {in.c, in.b, in.x, {}, {}}; }

cpu::ScalarDecay chunk_form(const Mamba2Ssd& in, const Prepared& p) { return {in.c, in.b, p.v, p.g, in.state.start}; }

Cost cost(const Mamba2Ssd& in, double flops, double tensors) {
  const double elements = static_cast<double>(in.x.size());
  return {flops + 4 * elements, tensors * static_cast<double>(in.x.bytes() + in.b.bytes() + in.c.bytes() + in.dt.bytes())};
}

struct Targets {
  GradTarget x, dt, b, c, skip, dt_bias, a_log, shared_dt, shared_bias;
};

Targets targets(Tape& t, const Mamba2Ssd& in) {
  return {t.grad_target(in.x),     t.grad_target(in.dt),        t.grad_target(in.b),
          t.grad_target(in.c),     t.grad_target(in.skip),      t.grad_target(in.dt_bias),
          t.grad_target(in.a_log), t.grad_target(in.shared_dt), t.grad_target(in.shared_bias)};
}

/// Scratch of the backward pass.
struct Scratch {
  Tensor states, d_states, dv, dg, parts, d_start;
};

template <class T>
void backward(const Mamba2Ssd& in, const Prepared& p, const Tensor& dy, const Tensor& d_end, const Targets& to, const Scratch& s) {
  prepare<T>(in, p);
  const cpu::ScalarDecay form = chunk_form(in, p);
  cpu::scalar_decay<T>(form, s.states, {});
  cpu::scalar_decay_backward<T>(form, s.states, {dy, d_end, s.d_states, to.c, to.b, s.dv, s.dg, s.d_start});
  const auto rows = rows_of<T>(in, p);
  const int64_t count = in.x.dim(0) * in.x.dim(1), heads = in.x.dim(2);
  const auto at = [](const GradTarget& target) { return target ? target.tensor.data<T>() : nullptr; };
  parallel_ranges(count, cpu::kRows, [&](int64_t first, int64_t last) {
    T* parts = s.parts.data<T>() + first / cpu::kRows * s.parts.dim(1);
    cpu::backward(rows,
                  {dy.data<T>(), s.dv.data<T>(), s.dg ? s.dg.data<T>() : nullptr, s.dg ? s.dg.dim(2) : 0, at(to.x), at(to.dt),
                   at(to.shared_dt), to.x.add, to.dt.add, to.shared_dt.add, parts},
                  first, last);
  });
  cpu::sum_parts<T>(s.parts, 0, to.dt_bias);
  cpu::sum_parts<T>(s.parts, heads, to.skip);
  cpu::sum_parts<T>(s.parts, in.shared_dt ? 3 * heads : 2 * heads, to.a_log);
  cpu::sum_parts<T>(s.parts, 3 * heads + 1, to.shared_bias);
}

void backward_on_cpu(Tape& t, const Mamba2Ssd& in, const Tensor& dy, const Tensor& d_end, const Targets& to, const Tensor& d_start) {
  const Prepared again = make_workspace(t, in);
  const cpu::ScalarDecay chunks = chunk_form(in, again);
  const DType dtype = accumulation_dtype(in.x.dtype());
  Scratch s{t.empty(chunks.states_shape(), dtype), t.empty(chunks.states_shape(), dtype), t.empty(in.x.shape(), dtype), {}, {}, d_start};
  if (in.a_log) s.dg = t.empty({in.x.dim(0), in.x.dim(1), in.shared_dt ? in.b.dim(2) : in.x.dim(2)}, dtype);
  s.parts = t.empty({(in.x.dim(0) * in.x.dim(1) + cpu::kRows - 1) / cpu::kRows, 3 * in.x.dim(2) + 2}, dtype);
  t.run("mamba2_ssd.backward", cost(in, 3.5 * chunks.flops(), 5),
        [&] { dispatch(in.x.dtype(), [&](auto zero) { backward<decltype(zero)>(in, again, dy, d_end, to, s); }); });
}

void backward_on_cuda(Tape& t, const Mamba2Ssd& in, const cuda::Mamba2Saved& saved, const Tensor& dy, const Tensor& d_end,
                      const Targets& to, const Tensor& d_start) {
  const cuda::Mamba2Workspace workspace = cuda::mamba2_backward_workspace(t, saved);
  const Shape lines{in.x.dim(0), in.x.dim(2), in.x.dim(1)};
  const cuda::Mamba2Gradients out{.dy = dy,
                                  .d_end = d_end,
                                  .x = to.x,
                                  .dt = to.dt,
                                  .b = to.b,
                                  .c = to.c,
                                  .skip = to.skip,
                                  .dt_bias = to.dt_bias,
                                  .a_log = to.a_log,
                                  .shared_dt = to.shared_dt,
                                  .shared_bias = to.shared_bias,
                                  .d_start = d_start,
                                  .d_step = t.empty(lines, DType::f32),
                                  .d_skip = t.empty(lines, DType::f32),
                                  .dg = in.a_log ? t.empty(lines, DType::f32) : Tensor(),
                                  .parts = t.empty({3, in.x.dim(0), workspace.form.chunks(), in.x.dim(2)}, DType::f32),
                                  .shared_parts = in.shared_dt ? t.empty({2, in.x.dim(0)}, DType::f32) : Tensor()};
  t.run(
      "mamba2_ssd.backward", cost(in, 3.5 * sizes(in).flops(), 5), [] {},
      [&] { cuda::mamba2_ssd_backward(t.stream(), in, workspace, out); });
}

}  // namespace

Mamba2Output mamba2_ssd(Tape& tape, const Mamba2Ssd& in) {
  check(in);
  Mamba2Output out{tape.empty(in.x.shape(), in.x.dtype()), {}};
  if (in.state.want_end) out.end = tape.empty({in.x.dim(0), in.x.dim(2), in.b.dim(3), in.x.dim(3)}, accumulation_dtype(in.x.dtype()));
  const Tensor end = in.state.in_place ? in.state.start : out.end;
  cuda::Mamba2Saved saved;
  if (tape.device().targets_cuda()) {
    const cuda::Mamba2Workspace workspace = cuda::mamba2_workspace(tape, in);
    tape.note_tensor_cores("mamba2_ssd", in.x.dtype(), cuda::runs_on_tensor_cores(workspace.form),
                           "states of " + std::to_string(in.b.dim(3)) + " and heads of " + std::to_string(in.x.dim(3)) +
                               "; states of a multiple of 8 up to 128 with heads of 32 or 64 have one");
    saved = {workspace.form, {workspace.scratch.scores, workspace.scratch.given}};
    tape.run(
        "mamba2_ssd", cost(in, sizes(in).flops(), 2), [] {}, [&] { cuda::mamba2_ssd(tape.stream(), in, workspace, out.y, end); });
  } else {
    const Prepared p = make_workspace(tape, in);
    const cpu::ScalarDecay form = chunk_form(in, p);
    const Tensor states = tape.empty(form.states_shape(), accumulation_dtype(in.x.dtype()));
    tape.run("mamba2_ssd", cost(in, form.flops(), 2), [&] {
      dispatch(in.x.dtype(), [&](auto zero) {
        using T = decltype(zero);
        prepare<T>(in, p);
        cpu::scalar_decay<T>(form, states, out.y);
        const auto rows = rows_of<T>(in, p);
        parallel_ranges(in.x.dim(0) * in.x.dim(1), cpu::kRows,
                        [&](int64_t first, int64_t last) { cpu::add_skip(rows, first, last, out.y.data<T>()); });
        if (end) cpu::scalar_decay_end<T>(form, states, end);
      });
    });
  }
  std::vector<Tensor*> outputs{&out.y};
  if (out.end) outputs.push_back(&out.end);
  tape.record({in.x, in.dt, in.b, in.c, in.skip, in.dt_bias, in.a_log, in.shared_dt, in.shared_bias, in.state.start}, outputs,
              [in, saved, y = out.y, end_state = out.end](Tape& t) {
                const Tensor dy = t.grad_or_zeros(y), d_end = end_state ? t.grad(end_state) : Tensor();
                Tensor d_start;
                if (in.state.start && in.state.start.differentiable())
                  d_start = t.empty(in.state.start.shape(), accumulation_dtype(in.x.dtype()));
                if (t.device().targets_cuda())
                  backward_on_cuda(t, in, saved, dy, d_end, targets(t, in), d_start);
                else
                  backward_on_cpu(t, in, dy, d_end, targets(t, in), d_start);
                if (d_start) t.add_grad(in.state.start, d_start);
              });
  return out;
}

namespace {

/// scores [T, T] of one head become weights: times Δ_j e^{Σ_{j<i≤t} g_i} below the diagonal, + D on it, 0 above.
template <class T>
void decay_weights(const cpu::SsdTokens<T>& r, int64_t length, int64_t first_row, int64_t h, T* weights) {
  const int64_t columns = r.decay == cpu::Decay::full ? r.heads : 1;
  parallel_for(length, [&](int64_t t) {
    T sum = 0, *w = weights + t * length;
    for (int64_t j = t; j >= 0; --j) {
      w[j] *= r.step[(first_row + j) * r.heads + h] * std::exp(sum);
      if (r.g) sum += r.g[(first_row + j) * columns + (columns > 1 ? h : 0)];
    }
    w[t] += r.skip[h];
    std::fill(w + t + 1, w + length, T(0));
  });
}

/// As if there were no others, from a zero state.
Mamba2Ssd alone(const Mamba2Ssd& in, const Sequences& sequences) {
  Mamba2Ssd some = in;
  for (Tensor* x : {&some.x, &some.dt, &some.b, &some.c, &some.shared_dt})
    if (*x) *x = x->slice(sequences.first, sequences.first + sequences.count);
  some.state = {};
  return some;
}

}  // namespace

Tensor mamba2_weights(Tape& tape, const Mamba2Ssd& in, const Sequences& sequences) {
  check(in);
  const int64_t length = in.x.dim(1), heads = in.x.dim(2), groups = in.b.dim(2), n = in.b.dim(3), maps = sequences.count * heads;
  const Tensor weights = tape.empty({maps, length, length}, accumulation_dtype(in.x.dtype()));
  const Mamba2Ssd some = alone(in, sequences);
  const Prepared p = tape.device().targets_cuda() ? Prepared{} : make_workspace(tape, some);
  const double pairs = static_cast<double>(maps * length * length);
  tape.run(
      "mamba2_weights", {pairs * static_cast<double>(2 * n + 3), static_cast<double>(weights.bytes())},
      [&] {
        dispatch(in.x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          prepare<T>(some, p);
          const auto rows = rows_of<T>(some, p);
          for (int64_t map = 0; map < maps; ++map) {
            const int64_t first_row = map / heads * length, h = map % heads;
            const int64_t at = (first_row * groups + h * groups / heads) * n;
            T* w = weights.data<T>() + map * length * length;
            cpu::gemm<T>(false, true, length, length, n, 1, some.c.data<T>() + at, groups * n, some.b.data<T>() + at, groups * n, false, w,
                         length);
            decay_weights(rows, length, first_row, h, w);
          }
        });
      },
      [&] { cuda::mamba2_weights(tape.stream(), in, sequences, weights); });
  return weights;
}

}  // namespace saccade
