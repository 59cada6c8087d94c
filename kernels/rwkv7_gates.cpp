#include "kernels/rwkv7_gates.h"

#include "kernels/expect.h"
#include "kernels/parallel.h"
#include "kernels/parts.h"
#include "kernels/simd.h"

namespace saccade {
namespace cpu {
namespace {

constexpr int64_t kTokens = 64;                  ///< per task
constexpr double kDecay = -0.60653065971263342;  ///< −e^{−1/2}

template <class T>
SACCADE_INLINE T sigmoid_of(T x) {
  return T(1) / (T(1) + fast_exp(-x));
}

/// d (+)= value, where it is wanted.
template <class T>
struct Into {
  T* to;
  bool add;
};
template <class T>
SACCADE_INLINE void put(const Into<T>& into, int64_t i, T value) {
  if (into.to) into.to[i] = into.add ? into.to[i] + value : value;
}

/// One token of rwkv7_gates: what comes in, and what goes out forward.
template <class T>
struct GateRow {
  const T *d, *rate, *k, *kappa, *k_a;
  T *log_w, *k_out, *a, *b;
};
template <class T>
SACCADE_INLINE void gates_row(const GateRow<T>& x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T rate = sigmoid_of(x.rate[i]);
    x.log_w[i] = static_cast<T>(kDecay) * sigmoid_of(x.d[i]);
    x.k_out[i] = x.k[i] * (T(1) + (rate - T(1)) * x.k_a[i]);
    x.a[i] = -x.kappa[i];
    x.b[i] = x.kappa[i] * rate;
  }
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
  for (int64_t i = 0; i < n; ++i) {
    const T s = sigmoid_of(x.d[i]);
    put(g.d, i, g.d_log_w[i] * static_cast<T>(kDecay) * s * (T(1) - s));
  }
  for (int64_t i = 0; i < n; ++i) {
    const T rate = sigmoid_of(x.rate[i]), d_rate = g.d_b[i] * x.kappa[i] + g.d_k_out[i] * x.k[i] * x.k_a[i];
    put(g.rate, i, d_rate * rate * (T(1) - rate));
    put(g.kappa, i, g.d_b[i] * rate - g.d_a[i]);
    put(g.k, i, g.d_k_out[i] * (T(1) + (rate - T(1)) * x.k_a[i]));
    g.d_k_a[i] += g.d_k_out[i] * x.k[i] * (rate - T(1));
  }
}

/// One token of rwkv7_output.
template <class T>
struct OutputRow {
  const T *y, *r, *k, *v, *g, *r_k;
};
template <class T>
SACCADE_INLINE T own_weight(const OutputRow<T>& x, int64_t at, int64_t width) {
  return lane_sum<T>(width, [&](int64_t i) SACCADE_INLINE_LAMBDA { return x.r[at + i] * x.k[at + i] * x.r_k[at + i]; });
}
template <class T>
SACCADE_INLINE void output_row(const OutputRow<T>& x, T* out, int64_t heads, int64_t width) {
  for (int64_t at = 0; at < heads * width; at += width) {
    const T own = own_weight(x, at, width);
    for (int64_t i = at; i < at + width; ++i) out[i] = (x.y[i] + own * x.v[i]) * x.g[i];
  }
}

template <class T>
struct OutputRowBack {
  const T* d_out;
  Into<T> y, r, k, v, g;
  T* d_r_k;
};
/// With e = d_out ∘ g: dy = e, dg = d_out (y + own v), dv = own e, and own's gradient e · v into r, k and r_k.
template <class T>
SACCADE_INLINE void output_row_back(const OutputRow<T>& x, const OutputRowBack<T>& b, int64_t heads, int64_t width) {
  for (int64_t at = 0; at < heads * width; at += width) {
    const T own = own_weight(x, at, width);
    const T d_own = lane_sum<T>(width, [&](int64_t i) SACCADE_INLINE_LAMBDA { return b.d_out[at + i] * x.g[at + i] * x.v[at + i]; });
    for (int64_t i = at; i < at + width; ++i) {
      const T e = b.d_out[i] * x.g[i];
      put(b.y, i, e);
      put(b.v, i, own * e);
      put(b.g, i, b.d_out[i] * (x.y[i] + own * x.v[i]));
      put(b.r, i, d_own * x.k[i] * x.r_k[i]);
      put(b.k, i, d_own * x.r[i] * x.r_k[i]);
      b.d_r_k[i] += d_own * x.r[i] * x.k[i];
    }
  }
}

template <class T>
SACCADE_INLINE void blend_run(const T* v, const T* first, const T* raw, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = v[i] + (first[i] - v[i]) * sigmoid_of(raw[i]);
}
template <class T>
SACCADE_INLINE void blend_run_back(const T* v, const T* first, const T* raw, const T* dy, const Into<T>& dv, const Into<T>& d_first,
                                   const Into<T>& d_raw, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T s = sigmoid_of(raw[i]);
    put(dv, i, dy[i] * (T(1) - s));
    put(d_first, i, dy[i] * s);
    put(d_raw, i, dy[i] * (first[i] - v[i]) * s * (T(1) - s));
  }
}

#define ENTRY_POINTS(T)                                                                                                             \
  SACCADE_SIMD void gates_token(const GateRow<T>& x, int64_t n) { gates_row(x, n); }                                                \
  SACCADE_SIMD void gates_token_back(const GateRow<T>& x, const GateRowBack<T>& g, int64_t n) { gates_row_back(x, g, n); }          \
  SACCADE_SIMD void output_token(const OutputRow<T>& x, T* out, int64_t heads, int64_t width) { output_row(x, out, heads, width); } \
  SACCADE_SIMD void output_token_back(const OutputRow<T>& x, const OutputRowBack<T>& b, int64_t heads, int64_t width) {             \
    output_row_back(x, b, heads, width);                                                                                            \
  }                                                                                                                                 \
  SACCADE_SIMD void blend(const T* v, const T* first, const T* raw, T* y, int64_t n) { blend_run(v, first, raw, y, n); }            \
  SACCADE_SIMD void blend_back(const T* v, const T* first, const T* raw, const T* dy, const Into<T>& dv, const Into<T>& d_first,    \
                               const Into<T>& d_raw, int64_t n) {                                                                   \
    blend_run_back(v, first, raw, dy, dv, d_first, d_raw, n);                                                                       \
  }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

template <class T>
Into<T> into(const GradTarget& target, int64_t at) {
  return {target ? target.tensor.data<T>() + at : nullptr, target.add};
}

}  // namespace
}  // namespace cpu

namespace {

int64_t tasks_of(int64_t tokens) { return (tokens + cpu::kTokens - 1) / cpu::kTokens; }

/// Calls body(task, first element) for every token of x [B, T, C], in blocks of tokens.
template <class Body>
void for_tokens(const Tensor& x, Body body) {
  const int64_t n = x.dim(-1), tokens = x.size() / n;
  parallel_for(tasks_of(tokens), [&](int64_t task) {
    for (int64_t t = task * cpu::kTokens; t < std::min(tokens, (task + 1) * cpu::kTokens); ++t) body(task, t * n);
  });
}

Cost cost(const Tensor& x, double flops, double tensors) {
  return {flops * static_cast<double>(x.size()), tensors * static_cast<double>(x.bytes())};
}

/// Sums over the tokens of each task, zeros at first.
Tensor make_parts(Tape& t, const Tensor& x, const Tensor& parameter) {
  return t.empty({tasks_of(x.size() / x.dim(-1)), x.dim(-1)}, parameter.dtype());
}
template <class T>
T* part_of(const Tensor& parts, int64_t task, bool first) {
  const int64_t n = parts.dim(1);
  T* part = parts.data<T>() + task * n;
  if (first) std::fill_n(part, n, T(0));
  return part;
}

struct GateInputs {
  Tensor d, rate_raw, k, kappa, k_a;
  template <class T>
  cpu::GateRow<T> row(int64_t at) const {
    return {d.data<T>() + at, rate_raw.data<T>() + at, k.data<T>() + at, kappa.data<T>() + at, k_a.data<T>(), nullptr, nullptr, nullptr,
            nullptr};
  }
};

void gates_backward(Tape& t, const GateInputs& in, const Rwkv7Gates& out) {
  const Tensor d_log_w = t.grad_or_zeros(out.log_w), dk = t.grad_or_zeros(out.k), da = t.grad_or_zeros(out.a), db = t.grad_or_zeros(out.b);
  const GradTarget d = t.grad_target(in.d), rate = t.grad_target(in.rate_raw), k = t.grad_target(in.k), kappa = t.grad_target(in.kappa),
                   k_a = t.grad_target(in.k_a);
  const Tensor parts = make_parts(t, in.d, in.k_a);
  t.run("rwkv7_gates.backward", cost(in.d, 28, 12), [&] {
    dispatch(in.d.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const int64_t n = in.d.dim(-1);
      for_tokens(in.d, [&](int64_t task, int64_t at) {
        const auto up = [&](const Tensor& g) { return g.data<T>() + at; };
        cpu::gates_token_back(in.row<T>(at),
                              {up(d_log_w), up(dk), up(da), up(db), cpu::into<T>(d, at), cpu::into<T>(rate, at), cpu::into<T>(k, at),
                               cpu::into<T>(kappa, at), part_of<T>(parts, task, at / n % cpu::kTokens == 0)},
                              n);
      });
      cpu::sum_parts<T>(parts, k_a);
    });
  });
}

struct OutputInputs {
  Tensor y, r, k, v, g, r_k;
  int64_t heads() const { return r_k.dim(0); }
  int64_t width() const { return r_k.dim(1); }
  template <class T>
  cpu::OutputRow<T> row(int64_t at) const {
    return {y.data<T>() + at, r.data<T>() + at, k.data<T>() + at, v.data<T>() + at, g.data<T>() + at, r_k.data<T>()};
  }
};

void output_backward(Tape& t, const OutputInputs& in, const Tensor& out) {
  const Tensor d_out = t.grad(out);
  const GradTarget y = t.grad_target(in.y), r = t.grad_target(in.r), k = t.grad_target(in.k), v = t.grad_target(in.v),
                   g = t.grad_target(in.g), r_k = t.grad_target(in.r_k);
  const Tensor parts = make_parts(t, in.y, in.r_k);
  t.run("rwkv7_output.backward", cost(in.y, 22, 11), [&] {
    dispatch(in.y.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const int64_t n = in.y.dim(-1);
      for_tokens(in.y, [&](int64_t task, int64_t at) {
        cpu::output_token_back(in.row<T>(at),
                               {d_out.data<T>() + at, cpu::into<T>(y, at), cpu::into<T>(r, at), cpu::into<T>(k, at), cpu::into<T>(v, at),
                                cpu::into<T>(g, at), part_of<T>(parts, task, at / n % cpu::kTokens == 0)},
                               in.heads(), in.width());
      });
      cpu::sum_parts<T>(parts, r_k);
    });
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
  Rwkv7Gates out{like(), like(), like(), like()};
  tape.run("rwkv7_gates", cost(d, 14, 8), [&] {
    dispatch(d.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_tokens(d, [&](int64_t, int64_t at) {
        cpu::GateRow<T> row = in.row<T>(at);
        row.log_w = out.log_w.data<T>() + at, row.k_out = out.k.data<T>() + at, row.a = out.a.data<T>() + at, row.b = out.b.data<T>() + at;
        cpu::gates_token(row, d.dim(-1));
      });
    });
  });
  tape.record({d, rate_raw, k, kappa, k_a}, {&out.log_w, &out.k, &out.a, &out.b}, [in, out](Tape& t) { gates_backward(t, in, out); });
  return out;
}

Tensor rwkv7_output(Tape& tape, const Tensor& y, const Tensor& r, const Tensor& k, const Tensor& v, const Tensor& g, const Tensor& r_k) {
  expect_equal("rwkv7_output", y, {&r, &k, &v, &g});
  expect(r_k.rank() == 2 && r_k.size() == y.dim(-1), "rwkv7_output", "r_k is ", r_k, ", y is ", y);
  const OutputInputs in{y, r, k, v, g, r_k};
  Tensor out = tape.empty(y.shape(), y.dtype());
  tape.run("rwkv7_output", cost(y, 6, 6), [&] {
    dispatch(y.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_tokens(y, [&](int64_t, int64_t at) { cpu::output_token(in.row<T>(at), out.data<T>() + at, in.heads(), in.width()); });
    });
  });
  tape.record({y, r, k, v, g, r_k}, {&out}, [in, out](Tape& t) { output_backward(t, in, out); });
  return out;
}

Tensor blend_values(Tape& tape, const Tensor& v, const Tensor& first, const Tensor& raw) {
  expect_equal("blend_values", v, {&first, &raw});
  Tensor y = tape.empty(v.shape(), v.dtype());
  tape.run("blend_values", cost(v, 7, 4), [&] {
    dispatch(v.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_tokens(v, [&](int64_t, int64_t at) {
        cpu::blend(v.data<T>() + at, first.data<T>() + at, raw.data<T>() + at, y.data<T>() + at, v.dim(-1));
      });
    });
  });
  tape.record({v, first, raw}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget dv = t.grad_target(v), d_first = t.grad_target(first), d_raw = t.grad_target(raw);
    t.run("blend_values.backward", cost(v, 12, 7), [&] {
      dispatch(v.dtype(), [&](auto zero) {
        using T = decltype(zero);
        for_tokens(v, [&](int64_t, int64_t at) {
          cpu::blend_back(v.data<T>() + at, first.data<T>() + at, raw.data<T>() + at, dy.data<T>() + at, cpu::into<T>(dv, at),
                          cpu::into<T>(d_first, at), cpu::into<T>(d_raw, at), v.dim(-1));
        });
      });
    });
  });
  return y;
}

}  // namespace saccade
