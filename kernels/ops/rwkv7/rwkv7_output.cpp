#include "kernels/ops/rwkv7/rwkv7_gates.h"

#include "kernels/cpu/partial_sums.h"
#include "kernels/engine/expect.h"
#include "kernels/ops/embedding/token_runs.h"
#include "kernels/ops/rwkv7/rwkv7_output_cuda.h"
#include "kernels/ops/shared/slices.h"

namespace saccade {
namespace cpu {
namespace {

/// One token of rwkv7_output.
template <class T>
struct OutputRow {
  const T *y, *r, *k, *v, *g, *r_k;
};
/// Σ_head r ∘ k ∘ r_k of the head that begins at `at`.
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
SACCADE_INLINE void output_head_back(const OutputRow<T>& x, const OutputRowBack<T>& b, int64_t head, int64_t width) {
  const T own = own_weight(x, head, width);
  const T d_own = lane_sum<T>(width, [&](int64_t i) SACCADE_INLINE_LAMBDA { return b.d_out[head + i] * x.g[head + i] * x.v[head + i]; });
  for_runs(width, [&](int64_t first, int64_t m) SACCADE_INLINE_LAMBDA {
    const int64_t at = head + first;
    const T *y = x.y + at, *r = x.r + at, *k = x.k + at, *v = x.v + at, *g = x.g + at, *r_k = x.r_k + at, *d_out = b.d_out + at;
    T *d_r_k = b.d_r_k + at, e[kRun], out[kRun];
    for (int64_t i = 0; i < m; ++i) e[i] = d_out[i] * g[i];
    put(b.y, at, e, m);
    for (int64_t i = 0; i < m; ++i) out[i] = own * e[i];
    put(b.v, at, out, m);
    for (int64_t i = 0; i < m; ++i) out[i] = d_out[i] * (y[i] + own * v[i]);
    put(b.g, at, out, m);
    for (int64_t i = 0; i < m; ++i) out[i] = d_own * k[i] * r_k[i];
    put(b.r, at, out, m);
    for (int64_t i = 0; i < m; ++i) out[i] = d_own * r[i] * r_k[i];
    put(b.k, at, out, m);
    for (int64_t i = 0; i < m; ++i) d_r_k[i] += d_own * r[i] * k[i];
  });
}
template <class T>
SACCADE_INLINE void output_row_back(const OutputRow<T>& x, const OutputRowBack<T>& b, int64_t heads, int64_t width) {
  for (int64_t at = 0; at < heads * width; at += width) output_head_back(x, b, at, width);
}

#define ENTRY_POINTS(T)                                                                                                             \
  SACCADE_SIMD void output_token(const OutputRow<T>& x, T* out, int64_t heads, int64_t width) { output_row(x, out, heads, width); } \
  SACCADE_SIMD void output_token_back(const OutputRow<T>& x, const OutputRowBack<T>& b, int64_t heads, int64_t width) {             \
    output_row_back(x, b, heads, width);                                                                                            \
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

struct OutputInputs {
  Tensor y, r, k, v, g, r_k;
  int64_t heads() const { return r_k.dim(0); }
  int64_t width() const { return r_k.dim(1); }
  cuda::Rwkv7Output on_cuda() const { return {y, r, k, v, g, r_k}; }
  template <class T>
  cpu::OutputRow<T> row(int64_t at) const {
    return {y.data<T>() + at, r.data<T>() + at, k.data<T>() + at, v.data<T>() + at, g.data<T>() + at, r_k.data<T>()};
  }
};

void output_backward(Tape& t, const OutputInputs& in, const Tensor& out) {
  const Tensor d_out = t.grad(out);
  const GradTarget y = t.grad_target(in.y), r = t.grad_target(in.r), k = t.grad_target(in.k), v = t.grad_target(in.v),
                   g = t.grad_target(in.g), r_k = t.grad_target(in.r_k);
  const int64_t tokens = in.y.size() / in.y.dim(-1);
  const Tensor parts =
      t.empty({t.device().targets_cuda() ? slice_parts(tokens, in.heads()) : cpu::token_tasks(tokens), in.y.dim(-1)}, in.r_k.dtype());
  t.run(
      "rwkv7_output.backward", cost(in.y, 22, 11),
      [&] {
        dispatch(in.y.dtype(), [&](auto zero) {
          using T = decltype(zero);
          cpu::for_tokens(in.y, [&](int64_t task, int64_t at) {
            cpu::output_token_back(in.row<T>(at),
                                   {d_out.data<T>() + at, cpu::into<T>(y, at), cpu::into<T>(r, at), cpu::into<T>(k, at),
                                    cpu::into<T>(v, at), cpu::into<T>(g, at), cpu::part_of<T>(parts, task, at)},
                                   in.heads(), in.width());
          });
          cpu::sum_parts<T>(parts, r_k);
        });
      },
      [&] {
        cuda::rwkv7_output_backward(t.stream(), in.on_cuda(), d_out, {y, r, k, v, g, r_k}, parts);
      });
}

}  // namespace

Tensor rwkv7_output(Tape& tape, const Tensor& y, const Tensor& r, const Tensor& k, const Tensor& v, const Tensor& g, const Tensor& r_k) {
  for (const Tensor* other : {&r, &k, &v, &g})
    expect(other->shape() == y.shape() && other->dtype() == y.dtype(), "rwkv7_output", "y is ", y, ", another input ", *other);
  expect(r_k.rank() == 2 && r_k.size() == y.dim(-1), "rwkv7_output", "r_k is ", r_k, ", y is ", y);
  const OutputInputs in{y, r, k, v, g, r_k};
  Tensor out = tape.empty(y.shape(), y.dtype());
  tape.run(
      "rwkv7_output", cost(y, 6, 6),
      [&] {
        dispatch(y.dtype(), [&](auto zero) {
          using T = decltype(zero);
          cpu::for_tokens(y, [&](int64_t, int64_t at) { cpu::output_token(in.row<T>(at), out.data<T>() + at, in.heads(), in.width()); });
        });
      },
      [&] { cuda::rwkv7_output(tape.stream(), in.on_cuda(), out); });
  tape.record({y, r, k, v, g, r_k}, {&out}, [in, out](Tape& t) { output_backward(t, in, out); });
  return out;
}

}  // namespace saccade
