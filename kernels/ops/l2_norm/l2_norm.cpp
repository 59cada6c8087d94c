#include "kernels/ops/l2_norm/l2_norm.h"

#include "kernels/cpu/simd.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/norm/unit_norm_cuda.h"

namespace saccade {
namespace cpu {
namespace {

constexpr int64_t kRows = 256;  ///< per task

template <class T>
SACCADE_INLINE T inverse_length(const T* x, int64_t n, double eps) {
  const T squares = lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return x[i] * x[i]; });
  return T(1) / std::sqrt(squares + static_cast<T>(eps));
}

template <class T>
SACCADE_INLINE void forward_rows(const T* x, T* y, int64_t rows, int64_t n, double eps) {
  for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
    const T r = inverse_length(x, n, eps);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * r;
  }
}

/// dx (+)= r (dy − x r² ⟨x, dy⟩)
template <class T>
SACCADE_INLINE void backward_rows(const T* x, const T* dy, T* dx, bool add, int64_t rows, int64_t n, double eps) {
  for (int64_t row = 0; row < rows; ++row, x += n, dy += n, dx += n) {
    const T r = inverse_length(x, n, eps);
    const T along = r * r * lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return x[i] * dy[i]; });
    if (add)
      for (int64_t i = 0; i < n; ++i) dx[i] += r * (dy[i] - x[i] * along);
    else
      for (int64_t i = 0; i < n; ++i) dx[i] = r * (dy[i] - x[i] * along);
  }
}

#define ENTRY_POINTS(T)                                                                                                  \
  SACCADE_SIMD void forward(const T* x, T* y, int64_t rows, int64_t n, double eps) { forward_rows(x, y, rows, n, eps); } \
  SACCADE_SIMD void backward(const T* x, const T* dy, T* dx, bool add, int64_t rows, int64_t n, double eps) {            \
    backward_rows(x, dy, dx, add, rows, n, eps);                                                                         \
  }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

}  // namespace
}  // namespace cpu

Tensor l2_norm(Tape& tape, const Tensor& x, double eps) {
  expect(x.rank() >= 1 && eps > 0, "l2_norm", "x is ", x, "; expected [..., D] and a positive eps");
  Tensor y = tape.empty(x.shape(), x.dtype());
  const int64_t n = x.dim(-1), rows = x.size() / n;
  const double elements = static_cast<double>(x.size()), bytes = static_cast<double>(x.bytes());
  tape.run(
      "l2_norm", {3 * elements, 2 * bytes},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          parallel_ranges(rows, cpu::kRows, [&](int64_t begin, int64_t end) {
            cpu::forward(x.data<T>() + begin * n, y.data<T>() + begin * n, end - begin, n, eps);
          });
        });
      },
      [&] {
        cuda::unit_norm(tape.stream(), {x, {}, eps, 0}, y);
      });
  tape.record({x}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget dx = t.grad_target(x);
    t.run(
        "l2_norm.backward", {7 * elements, 3 * bytes},
        [&] {
          dispatch(x.dtype(), [&](auto zero) {
            using T = decltype(zero);
            parallel_ranges(rows, cpu::kRows, [&](int64_t begin, int64_t end) {
              cpu::backward(x.data<T>() + begin * n, dy.data<T>() + begin * n, dx.tensor.data<T>() + begin * n, dx.add, end - begin, n,
                            eps);
            });
          });
        },
        [&] {
          cuda::unit_norm_backward(t.stream(), {x, {}, eps, 0}, dy, dx, {}, {});
        });
  });
  return y;
}

}  // namespace saccade
