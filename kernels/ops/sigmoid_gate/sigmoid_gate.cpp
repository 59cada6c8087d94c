#include "kernels/ops/sigmoid_gate/sigmoid_gate.h"

#include "kernels/cpu/smooth.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/log_decay/log_decay_cuda.h"

namespace saccade {
namespace cpu {
namespace {

constexpr int64_t kGrain = 1 << 14;

template <class T>
SACCADE_INLINE void gate_run(const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = sigmoid(x[i]);
}
template <class T>
SACCADE_INLINE void gate_run_back(const T* y, const T* dy, T* dx, bool add, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dx[i] = (add ? dx[i] : T(0)) + dy[i] * y[i] * (T(1) - y[i]);
}

#define ENTRY_POINTS(T)                                                      \
  SACCADE_SIMD void gate(const T* x, T* y, int64_t n) { gate_run(x, y, n); } \
  SACCADE_SIMD void gate_back(const T* y, const T* dy, T* dx, bool add, int64_t n) { gate_run_back(y, dy, dx, add, n); }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

}  // namespace
}  // namespace cpu

Tensor sigmoid_gate(Tape& tape, const Tensor& x) {
  Tensor y = tape.empty(x.shape(), accumulation_dtype(x.dtype()));
  const double elements = static_cast<double>(x.size()), bytes = static_cast<double>(x.bytes() + y.bytes());
  tape.run(
      "sigmoid_gate", {3 * elements, bytes},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          parallel_ranges(x.size(), cpu::kGrain,
                          [&](int64_t begin, int64_t end) { cpu::gate(x.data<T>() + begin, y.data<T>() + begin, end - begin); });
        });
      },
      [&] { cuda::sigmoid_gate(tape.stream(), x, y); });
  tape.record({x}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget dx = t.grad_target(x);
    t.run(
        "sigmoid_gate.backward", {4 * elements, bytes + static_cast<double>(y.bytes())},
        [&] {
          dispatch(x.dtype(), [&](auto zero) {
            using T = decltype(zero);
            parallel_ranges(x.size(), cpu::kGrain, [&](int64_t begin, int64_t end) {
              cpu::gate_back(y.data<T>() + begin, dy.data<T>() + begin, dx.tensor.data<T>() + begin, dx.add, end - begin);
            });
          });
        },
        [&] { cuda::sigmoid_gate_backward(t.stream(), y, dy, dx); });
  });
  return y;
}

}  // namespace saccade
