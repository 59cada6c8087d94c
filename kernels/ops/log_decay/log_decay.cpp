#include "kernels/ops/log_decay/log_decay.h"

#include "kernels/cpu/partial_sums.h"
#include "kernels/cpu/smooth.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/log_decay/log_decay_cuda.h"
#include "kernels/ops/shared/column_runs.h"

namespace saccade {
namespace cpu {
namespace {

constexpr int64_t kRows = 256;  ///< per task

template <class T>
SACCADE_INLINE void decay_rows(const T* a, const T* a_log, const T* bias, int64_t heads, int64_t first, int64_t last, T* g) {
  for (int64_t row = first; row < last; ++row)
    for (int64_t h = 0; h < heads; ++h) g[row * heads + h] = -fast_exp(a_log[h]) * softplus(a[row * heads + h] + bias[h]);
}

/// sums: of one task, a_log [H] then bias [H].
template <class T>
SACCADE_INLINE void decay_rows_backward(const T* a, const T* a_log, const T* bias, const T* dg, int64_t heads, int64_t first, int64_t last,
                                        T* da, bool add, T* sums) {
  for (int64_t i = 0; i < 2 * heads; ++i) sums[i] = 0;
  for (int64_t row = first; row < last; ++row)
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t i = row * heads + h;
      const T x = a[i] + bias[h], size = -fast_exp(a_log[h]) * dg[i], d = size * sigmoid(x);
      sums[h] += size * softplus(x);
      sums[heads + h] += d;
      if (da) da[i] = (add ? da[i] : T(0)) + d;
    }
}

#define ENTRY_POINTS(T)                                                                                                                \
  SACCADE_SIMD void decay(const T* a, const T* a_log, const T* bias, int64_t heads, int64_t first, int64_t last, T* g) {               \
    decay_rows(a, a_log, bias, heads, first, last, g);                                                                                 \
  }                                                                                                                                    \
  SACCADE_SIMD void decay_backward(const T* a, const T* a_log, const T* bias, const T* dg, int64_t heads, int64_t first, int64_t last, \
                                   T* da, bool add, T* sums) {                                                                         \
    decay_rows_backward(a, a_log, bias, dg, heads, first, last, da, add, sums);                                                        \
  }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

}  // namespace
}  // namespace cpu

Tensor log_decay(Tape& tape, const Tensor& a, const Tensor& a_log, const Tensor& bias) {
  const int64_t heads = a.dim(-1), rows = a.size() / heads;
  expect(a_log.shape() == Shape{heads} && bias.shape() == a_log.shape(), "log_decay", "a is ", a, ", a_log is ", a_log, ", bias is ", bias);
  Tensor g = tape.empty(a.shape(), accumulation_dtype(a.dtype()));
  const double elements = static_cast<double>(a.size());
  tape.run(
      "log_decay", {8 * elements, static_cast<double>(a.bytes() + g.bytes())},
      [&] {
        dispatch(a.dtype(), [&](auto zero) {
          using T = decltype(zero);
          parallel_ranges(rows, cpu::kRows, [&](int64_t first, int64_t last) {
            cpu::decay(a.data<T>(), a_log.data<T>(), bias.data<T>(), heads, first, last, g.data<T>());
          });
        });
      },
      [&] {
        cuda::log_decay(tape.stream(), {a, a_log, bias}, g);
      });
  tape.record({a, a_log, bias}, {&g}, [=](Tape& t) {
    const Tensor dg = t.grad(g);
    const GradTarget da = t.grad_target(a), d_log = t.grad_target(a_log), d_bias = t.grad_target(bias);
    const Shape sums =
        t.device().targets_cuda() ? Shape{2, run_parts(rows), heads} : Shape{(rows + cpu::kRows - 1) / cpu::kRows, 2 * heads};
    const Tensor parts = t.empty(sums, g.dtype());
    t.run(
        "log_decay.backward", {14 * elements, static_cast<double>(2 * a.bytes() + g.bytes())},
        [&] {
          dispatch(a.dtype(), [&](auto zero) {
            using T = decltype(zero);
            parallel_ranges(rows, cpu::kRows, [&](int64_t first, int64_t last) {
              cpu::decay_backward(a.data<T>(), a_log.data<T>(), bias.data<T>(), dg.data<T>(), heads, first, last,
                                  da ? da.tensor.data<T>() : nullptr, da.add, parts.data<T>() + first / cpu::kRows * 2 * heads);
            });
            cpu::sum_parts<T>(parts, 0, d_log);
            cpu::sum_parts<T>(parts, heads, d_bias);
          });
        },
        [&] {
          cuda::log_decay_backward(t.stream(), {a, a_log, bias}, dg, da, d_log, d_bias, parts);
        });
  });
  return g;
}

}  // namespace saccade
