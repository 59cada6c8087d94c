#include "kernels/ops/rwkv7/rwkv7_gates.h"

#include "kernels/cpu/partial_sums.h"
#include "kernels/cpu/smooth.h"
#include "kernels/engine/expect.h"
#include "kernels/ops/embedding/token_runs.h"
#include "kernels/ops/rwkv7/rwkv7_gates_cuda.h"
#include "kernels/ops/shared/column_runs.h"

namespace saccade {
namespace cpu {
namespace {

constexpr double kDecay = -0.60653065971263342;  ///< −e^{−1/2}

/// One token of rwkv7_gates: what comes in, and what goes out forward.
template <class T>
struct GateRow {
  const T *d, *rate, *k, *kappa, *k_a;
  T *log_w, *k_out, *a, *b;
};
template <class T>
SACCADE_INLINE void gates_row(const GateRow<T>& x, int64_t n) {
  for_runs(n, [&](int64_t at, int64_t m) SACCADE_INLINE_LAMBDA {
    const T *d = x.d + at, *raw = x.rate + at, *k = x.k + at, *kappa = x.kappa + at, *k_a = x.k_a + at;
    T *log_w = x.log_w + at, *k_out = x.k_out + at, *a = x.a + at, *b = x.b + at, rate[kRun];
    for (int64_t i = 0; i < m; ++i) rate[i] = sigmoid(raw[i]);
    for (int64_t i = 0; i < m; ++i) log_w[i] = static_cast<T>(kDecay) * sigmoid(d[i]);
    for (int64_t i = 0; i < m; ++i) k_out[i] = k[i] * (T(1) + (rate[i] - T(1)) * k_a[i]);
    for (int64_t i = 0; i < m; ++i) a[i] = -kappa[i];
    for (int64_t i = 0; i < m; ++i) b[i] = kappa[i] * rate[i];
  });
}

/// Upstream gradients and where the others go; d_k_a is a sum over tokens.
template <class T>
struct GateRowBack {
  const T *d_log_w, *d_k_out, *d_a, *d_b;
  Into<T> d, rate, k, kappa;
  T* d_k_a;
};
template <class T>
SACCADE_INLINE void gates_row_back(const GateRow<T>& x, const GateRowBack<T>& g, int64_t n) {
  for_runs(n, [&](int64_t at, int64_t m) SACCADE_INLINE_LAMBDA {
    const T *d = x.d + at, *raw = x.rate + at, *k = x.k + at, *kappa = x.kappa + at, *k_a = x.k_a + at;
    const T *dw = g.d_log_w + at, *dk = g.d_k_out + at, *da = g.d_a + at, *db = g.d_b + at;
    T *d_k_a = g.d_k_a + at, rate[kRun], out[kRun];
    for (int64_t i = 0; i < m; ++i) {
      const T s = sigmoid(d[i]);
      out[i] = dw[i] * static_cast<T>(kDecay) * s * (T(1) - s);
    }
    put(g.d, at, out, m);
    for (int64_t i = 0; i < m; ++i) rate[i] = sigmoid(raw[i]);
    for (int64_t i = 0; i < m; ++i) out[i] = (db[i] * kappa[i] + dk[i] * k[i] * k_a[i]) * rate[i] * (T(1) - rate[i]);
    put(g.rate, at, out, m);
    for (int64_t i = 0; i < m; ++i) out[i] = db[i] * rate[i] - da[i];
    put(g.kappa, at, out, m);
    for (int64_t i = 0; i < m; ++i) out[i] = dk[i] * (T(1) + (rate[i] - T(1)) * k_a[i]);
    put(g.k, at, out, m);
    for (int64_t i = 0; i < m; ++i) d_k_a[i] += dk[i] * k[i] * (rate[i] - T(1));
  });
}

template <class T>
SACCADE_INLINE void blend_run(const T* v, const T* first, const T* raw, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = v[i] + (first[i] - v[i]) * sigmoid(raw[i]);
}
template <class T>
SACCADE_INLINE void blend_run_back(const T* values, const T* firsts, const T* raws, const T* upstream, const Into<T>& dv,
                                   const Into<T>& d_first, const Into<T>& d_raw, int64_t n) {
  for_runs(n, [&](int64_t at, int64_t m) SACCADE_INLINE_LAMBDA {
    const T *v = values + at, *first = firsts + at, *raw = raws + at, *dy = upstream + at;
    T s[kRun], out[kRun];
    for (int64_t i = 0; i < m; ++i) s[i] = sigmoid(raw[i]);
    for (int64_t i = 0; i < m; ++i) out[i] = dy[i] * (T(1) - s[i]);
    put(dv, at, out, m);
    for (int64_t i = 0; i < m; ++i) out[i] = dy[i] * s[i];
    put(d_first, at, out, m);
    for (int64_t i = 0; i < m; ++i) out[i] = dy[i] * (first[i] - v[i]) * s[i] * (T(1) - s[i]);
    put(d_raw, at, out, m);
  });
}

#define ENTRY_POINTS(T)                                                                                                          \
  SACCADE_SIMD void gates_token(const GateRow<T>& x, int64_t n) { gates_row(x, n); }                                             \
  SACCADE_SIMD void gates_token_back(const GateRow<T>& x, const GateRowBack<T>& g, int64_t n) { gates_row_back(x, g, n); }       \
  SACCADE_SIMD void blend(const T* v, const T* first, const T* raw, T* y, int64_t n) { blend_run(v, first, raw, y, n); }         \
  SACCADE_SIMD void blend_back(const T* v, const T* first, const T* raw, const T* dy, const Into<T>& dv, const Into<T>& d_first, \
                               const Into<T>& d_raw, int64_t n) {                                                                \
    blend_run_back(v, first, raw, dy, dv, d_first, d_raw, n);                                                                    \
  }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

}  // namespace
}  // namespace cpu

namespace {

Cost cost(const Tensor& x, double flops, double tensors) {
  return {flops * static_cast<double>(x.size()), tensors * static_cast<double>(x.bytes())};
}

struct GateInputs {
  Tensor d, rate_raw, k, kappa, k_a;
  cuda::Rwkv7GateInputs on_cuda() const { return {d, rate_raw, k, kappa, k_a}; }
  template <class T>
  cpu::GateRow<T> row(int64_t at) const {
    cpu::GateRow<T> row{};
    row.d = d.data<T>() + at, row.rate = rate_raw.data<T>() + at, row.k = k.data<T>() + at;
    row.kappa = kappa.data<T>() + at, row.k_a = k_a.data<T>();
    return row;
  }
};

void gates_backward(Tape& t, const GateInputs& in, const Rwkv7Gates& out) {
  const Tensor d_log_w = t.grad_or_zeros(out.log_w), dk = t.grad_or_zeros(out.k), da = t.grad_or_zeros(out.a), db = t.grad_or_zeros(out.b);
  const GradTarget d = t.grad_target(in.d), rate = t.grad_target(in.rate_raw), k = t.grad_target(in.k), kappa = t.grad_target(in.kappa),
                   k_a = t.grad_target(in.k_a);
  const int64_t tokens = in.d.size() / in.d.dim(-1);
  const Tensor parts = t.empty({t.device().targets_cuda() ? run_parts(tokens) : cpu::token_tasks(tokens), in.d.dim(-1)}, in.k_a.dtype());
  t.run(
      "rwkv7_gates.backward", cost(in.d, 28, 12),
      [&] {
        dispatch(in.d.dtype(), [&](auto zero) {
          using T = decltype(zero);
          const int64_t n = in.d.dim(-1);
          cpu::for_tokens(in.d, [&](int64_t task, int64_t at) {
            const auto up = [&](const Tensor& g) { return g.data<T>() + at; };
            cpu::gates_token_back(in.row<T>(at),
                                  {up(d_log_w), up(dk), up(da), up(db), cpu::into<T>(d, at), cpu::into<T>(rate, at), cpu::into<T>(k, at),
                                   cpu::into<T>(kappa, at), cpu::part_of<T>(parts, task, at)},
                                  n);
          });
          cpu::sum_parts<T>(parts, k_a);
        });
      },
      [&] {
        cuda::rwkv7_gates_backward(t.stream(), in.on_cuda(), {d_log_w, dk, da, db}, {d, rate, k, kappa, k_a}, parts);
      });
}

void expect_equal(const char* op, const Tensor& x, std::initializer_list<const Tensor*> others) {
  for (const Tensor* other : others)
    expect(other->shape() == x.shape() && other->dtype() == x.dtype(), op, "one input is ", x, ", another ", *other);
}

}  // namespace

Rwkv7Gates rwkv7_gates(Tape& tape, const Tensor& d, const Tensor& rate_raw, const Tensor& k, const Tensor& kappa, const Tensor& k_a) {
  expect_equal("rwkv7_gates", d, {&rate_raw, &k, &kappa});
  expect(k_a.size() == d.dim(-1), "rwkv7_gates", "k_a is ", k_a, ", d is ", d);
  const GateInputs in{d, rate_raw, k, kappa, k_a};
  const auto like = [&] { return tape.empty(d.shape(), d.dtype()); };
  Rwkv7Gates out{tape.empty(d.shape(), accumulation_dtype(d.dtype())), like(), like(), like()};
  tape.run(
      "rwkv7_gates", cost(d, 14, 8),
      [&] {
        dispatch(d.dtype(), [&](auto zero) {
          using T = decltype(zero);
          cpu::for_tokens(d, [&](int64_t, int64_t at) {
            cpu::GateRow<T> row = in.row<T>(at);
            row.log_w = out.log_w.data<T>() + at, row.k_out = out.k.data<T>() + at, row.a = out.a.data<T>() + at,
            row.b = out.b.data<T>() + at;
            cpu::gates_token(row, d.dim(-1));
          });
        });
      },
      [&] {
        cuda::rwkv7_gates(tape.stream(), in.on_cuda(), {out.log_w, out.k, out.a, out.b});
      });
  tape.record({d, rate_raw, k, kappa, k_a}, {&out.log_w, &out.k, &out.a, &out.b}, [in, out](Tape& t) { gates_backward(t, in, out); });
  return out;
}

Tensor blend_values(Tape& tape, const Tensor& v, const Tensor& first, const Tensor& raw) {
  expect_equal("blend_values", v, {&first, &raw});
  Tensor y = tape.empty(v.shape(), v.dtype());
  tape.run(
      "blend_values", cost(v, 7, 4),
      [&] {
        dispatch(v.dtype(), [&](auto zero) {
          using T = decltype(zero);
          cpu::for_tokens(v, [&](int64_t, int64_t at) {
            cpu::blend(v.data<T>() + at, first.data<T>() + at, raw.data<T>() + at, y.data<T>() + at, v.dim(-1));
          });
        });
      },
      [&] { cuda::blend_values(tape.stream(), v, first, raw, y); });
  tape.record({v, first, raw}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget dv = t.grad_target(v), d_first = t.grad_target(first), d_raw = t.grad_target(raw);
    t.run(
        "blend_values.backward", cost(v, 12, 7),
        [&] {
          dispatch(v.dtype(), [&](auto zero) {
            using T = decltype(zero);
            cpu::for_tokens(v, [&](int64_t, int64_t at) {
              cpu::blend_back(v.data<T>() + at, first.data<T>() + at, raw.data<T>() + at, dy.data<T>() + at, cpu::into<T>(dv, at),
                              cpu::into<T>(d_first, at), cpu::into<T>(d_raw, at), v.dim(-1));
            });
          });
        },
        [&] { cuda::blend_values_backward(t.stream(), v, first, raw, dy, dv, d_first, d_raw); });
  });
  return y;
}

}  // namespace saccade
