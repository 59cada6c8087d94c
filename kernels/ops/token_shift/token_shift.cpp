#include "kernels/ops/token_shift/token_shift.h"

#include <algorithm>

#include "kernels/cpu/partial_sums.h"
#include "kernels/cpu/simd.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/shared/column_runs.h"
#include "kernels/ops/token_shift/token_shift_cuda.h"

namespace saccade {
namespace cpu {
namespace {

constexpr int64_t kTokens = 64;  ///< per task

/// y = from + (to − from) w
template <class T>
SACCADE_INLINE void blend_row(const T* from, const T* to, const T* w, T* y, int64_t n) {
  for (int64_t c = 0; c < n; ++c) y[c] = from[c] + (to[c] - from[c]) * w[c];
}
/// d_to += dy w, or d_from += dy (1 − w)
template <class T>
SACCADE_INLINE void share_row(const T* dy, const T* w, bool to, T* dx, int64_t n) {
  if (to)
    for (int64_t c = 0; c < n; ++c) dx[c] += dy[c] * w[c];
  else
    for (int64_t c = 0; c < n; ++c) dx[c] += dy[c] * (T(1) - w[c]);
}
/// dw (+)= dy (to − from)
template <class T>
SACCADE_INLINE void weight_row(const T* dy, const T* from, const T* to, T* dw, bool add, int64_t n) {
  if (add)
    for (int64_t c = 0; c < n; ++c) dw[c] += dy[c] * (to[c] - from[c]);
  else
    for (int64_t c = 0; c < n; ++c) dw[c] = dy[c] * (to[c] - from[c]);
}

#define ENTRY_POINTS(T)                                                                                              \
  SACCADE_SIMD void blend(const T* from, const T* to, const T* w, T* y, int64_t n) { blend_row(from, to, w, y, n); } \
  SACCADE_SIMD void share(const T* dy, const T* w, bool to, T* dx, int64_t n) { share_row(dy, w, to, dx, n); }       \
  SACCADE_SIMD void weight(const T* dy, const T* from, const T* to, T* dw, bool add, int64_t n) { weight_row(dy, from, to, dw, add, n); }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

/// One shift: its input, the token before each sequence, the weights.
struct Shift {
  Tensor x, before;
  std::vector<Tensor> weights;
  ShiftWeight of;

  int64_t length() const { return x.dim(1); }
  int64_t channels() const { return x.dim(2); }
  int64_t tasks_a_sequence() const { return (length() + kTokens - 1) / kTokens; }
  int64_t tasks() const { return x.dim(0) * tasks_a_sequence(); }
  /// Whether weight i is one vector for all tokens.
  bool shared(size_t i) const { return weights[i].rank() == 1; }
  template <class T>
  const T* weight_at(size_t i, int64_t row) const {
    return weights[i].data<T>() + (shared(i) ? 0 : row * channels());
  }
};

/// Calls body(task, row, t) for every token of every task in order; row counts over all sequences.
template <class Body>
void for_rows(const Shift& s, Body body) {
  parallel_for(s.tasks(), [&](int64_t task) {
    const int64_t b = task / s.tasks_a_sequence(), first = task % s.tasks_a_sequence() * kTokens;
    for (int64_t t = first; t < std::min(s.length(), first + kTokens); ++t) body(task, b * s.length() + t, t);
  });
}

/// x⁻ of a row.
template <class T>
const T* previous_row(const Shift& s, int64_t row, int64_t t, const std::vector<T>& zeros) {
  if (t > 0) return s.x.data<T>() + (row - 1) * s.channels();
  return s.before ? s.before.data<T>() + row / s.length() * s.channels() : zeros.data();
}

template <class T>
void shift(const Shift& s, const std::vector<Tensor>& y) {
  const int64_t n = s.channels();
  const std::vector<T> zeros(static_cast<size_t>(n));
  for_rows(s, [&](int64_t, int64_t row, int64_t t) {
    const T *from = s.x.data<T>() + row * n, *to = previous_row<T>(s, row, t, zeros);
    if (s.of == ShiftWeight::current) std::swap(from, to);
    for (size_t i = 0; i < y.size(); ++i) blend(from, to, s.weight_at<T>(i, row), y[i].data<T>() + row * n, n);
  });
}

/// Gradients of the blends (empty where none arrived) and where those of the weights go; parts [task, C] for shared ones.
struct ShiftGradients {
  std::vector<Tensor> dy;
  GradTarget dx;
  std::vector<GradTarget> dw;
  std::vector<Tensor> parts;
};

/// dx_t: what token t gives itself, and what token t+1 gives the one before it.
template <class T>
void input_gradient(const Shift& s, const ShiftGradients& g, int64_t row, int64_t t) {
  const int64_t n = s.channels();
  T* dx = g.dx.tensor.data<T>() + row * n;
  if (!g.dx.add) std::fill_n(dx, n, T(0));
  const bool previous = s.of == ShiftWeight::previous, followed = t + 1 < s.length();
  for (size_t i = 0; i < g.dy.size(); ++i) {
    if (!g.dy[i]) continue;
    const T* dy = g.dy[i].data<T>() + row * n;
    share(dy, s.weight_at<T>(i, row), !previous, dx, n);
    if (followed) share(dy + n, s.weight_at<T>(i, row + 1), previous, dx, n);
  }
}

template <class T>
void shift_backward(const Shift& s, const ShiftGradients& g) {
  const int64_t n = s.channels();
  const std::vector<T> zeros(static_cast<size_t>(n));
  for_rows(s, [&](int64_t task, int64_t row, int64_t t) {
    if (g.dx) input_gradient<T>(s, g, row, t);
    const T *from = s.x.data<T>() + row * n, *to = previous_row<T>(s, row, t, zeros);
    if (s.of == ShiftWeight::current) std::swap(from, to);
    for (size_t i = 0; i < g.dy.size(); ++i) {
      if (!g.dy[i] || !g.dw[i]) continue;
      const T* dy = g.dy[i].data<T>() + row * n;
      if (s.shared(i))
        weight(dy, from, to, g.parts[i].data<T>() + task * n, t % kTokens != 0, n);
      else
        weight(dy, from, to, g.dw[i].tensor.data<T>() + row * n, g.dw[i].add, n);
    }
  });
  for (size_t i = 0; i < g.parts.size(); ++i)
    if (g.parts[i]) sum_parts<T>(g.parts[i], g.dw[i]);
}

}  // namespace
}  // namespace cpu

namespace {

Cost cost(const cpu::Shift& s, double flops, double tensors) {
  const double blends = static_cast<double>(s.weights.size());
  double bytes = static_cast<double>(s.x.bytes()) * (1 + tensors * blends);
  for (const Tensor& w : s.weights) bytes += static_cast<double>(w.bytes());
  return {flops * blends * static_cast<double>(s.x.size()), bytes};
}

cuda::TokenShift on_cuda(const cpu::Shift& s) { return {s.x, s.before, s.weights, s.of == ShiftWeight::previous}; }

void backward(Tape& t, const cpu::Shift& s, const std::vector<Tensor>& y) {
  cpu::ShiftGradients g;
  for (const Tensor& blend : y) g.dy.push_back(t.grad(blend));
  g.dx = t.grad_target(s.x);
  for (size_t i = 0; i < y.size(); ++i) {
    g.dw.push_back(g.dy[i] ? t.grad_target(s.weights[i]) : GradTarget());
    const int64_t sums = t.device().targets_cuda() ? s.x.dim(0) * run_parts(s.length()) : s.tasks();
    g.parts.push_back(g.dw[i] && s.shared(i) ? t.empty({sums, s.channels()}, s.weights[i].dtype()) : Tensor());
  }
  t.run(
      "token_shift.backward", cost(s, 7, 2), [&] { dispatch(s.x.dtype(), [&](auto zero) { cpu::shift_backward<decltype(zero)>(s, g); }); },
      [&] { cuda::token_shift_backward(t.stream(), on_cuda(s), g.dy, g.dx, g.dw, g.parts); });
}

}  // namespace

std::vector<Tensor> token_shift(Tape& tape, const Tensor& x, const Tensor& before, const std::vector<Tensor>& weights, ShiftWeight of) {
  expect(x.rank() == 3, "token_shift", "x is ", x, "; expected [B, T, C]");
  expect(!before || (before.shape() == Shape{x.dim(0), x.dim(2)} && before.dtype() == x.dtype()), "token_shift", "before is ", before,
         ", x is ", x);
  std::vector<Tensor> inputs{x}, y;
  for (const Tensor& w : weights) {
    expect(w.shape() == x.shape() || w.shape() == Shape{x.dim(2)}, "token_shift", "a weight is ", w, ", x is ", x);
    inputs.push_back(w);
    y.push_back(tape.empty(x.shape(), x.dtype()));
  }
  const cpu::Shift s{x, before, weights, of};
  tape.run(
      "token_shift", cost(s, 3, 1), [&] { dispatch(x.dtype(), [&](auto zero) { cpu::shift<decltype(zero)>(s, y); }); },
      [&] { cuda::token_shift(tape.stream(), on_cuda(s), y); });
  std::vector<Tensor*> outputs;
  for (Tensor& blend : y) outputs.push_back(&blend);
  const std::vector<Tensor> recorded = y;
  tape.record(inputs, outputs, [s, recorded](Tape& t) { backward(t, s, recorded); });
  return y;
}

Tensor last_token(Tape& tape, const Tensor& x) {
  expect(x.rank() == 3 && x.dim(1) > 0, "last_token", "x is ", x, "; expected [B, T, C]");
  const int64_t batch = x.dim(0), length = x.dim(1), n = x.dim(2);
  Tensor last = tape.empty({batch, n}, x.dtype());
  tape.run(
      "last_token", {0, 2.0 * static_cast<double>(last.bytes())},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          for (int64_t b = 0; b < batch; ++b) std::copy_n(x.data<T>() + ((b + 1) * length - 1) * n, n, last.data<T>() + b * n);
        });
      },
      [&] { cuda::last_token(tape.stream(), x, last); });
  return last;
}

}  // namespace saccade
