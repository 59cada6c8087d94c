#include "kernels/ops/elementwise/elementwise.h"

#include "kernels/cpu/simd.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/elementwise/elementwise_cuda.h"

namespace saccade {
namespace cpu {
namespace {

constexpr int64_t kGrain = 1 << 14;

/// f(x) and f'(x).
template <class T>
struct Point {
  T value, slope;
};

struct Identity {
  template <class T>
  SACCADE_INLINE Point<T> at(T x) {
    return {x, T(1)};
  }
};
struct Gelu {
  template <class T>
  SACCADE_INLINE Point<T> at(T x) {
    const auto normal = fast_normal(x);
    return {x * normal.cdf, normal.cdf + x * normal.pdf};
  }
};
struct Relu {
  template <class T>
  SACCADE_INLINE Point<T> at(T x) {
    return {select(is_positive(x), x, T(0)), select(is_positive(x), T(1), T(0))};
  }
};
struct Relu2 {
  template <class T>
  SACCADE_INLINE Point<T> at(T x) {
    const T positive = select(is_positive(x), x, T(0));
    return {positive * positive, 2 * positive};
  }
};
struct Silu {
  template <class T>
  SACCADE_INLINE Point<T> at(T x) {
    const T s = T(1) / (T(1) + fast_exp(-x));
    return {x * s, s * (T(1) + x * (T(1) - s))};
  }
};
struct Sigmoid {
  template <class T>
  SACCADE_INLINE Point<T> at(T x) {
    const T s = T(1) / (T(1) + fast_exp(-x));
    return {s, s * (T(1) - s)};
  }
};
struct Tanh {
  SACCADE_INLINE Point<double> at(double x) {
    const double t = std::tanh(x);
    return {t, 1 - t * t};
  }
  SACCADE_INLINE Point<float> at(float x) {
    const float s = x * x;  // near 0 the quotient would lose digits
    const float series = x * (1.0f - s * (0.333333333f - s * (0.133333333f - s * (0.0539682540f - s * 0.0218694885f))));
    const float t = select(is_positive(0.09f - s), series, 1.0f - 2.0f / (1.0f + fast_exp(2.0f * x)));
    return {t, 1.0f - t * t};
  }
};

/// Calls body with the function as a type, so that loops hold no switch.
template <class Body>
SACCADE_INLINE void choose(Activation f, Body body) {
  switch (f) {
    case Activation::none: return body(Identity{});
    case Activation::gelu: return body(Gelu{});
    case Activation::relu: return body(Relu{});
    case Activation::relu2: return body(Relu2{});
    case Activation::silu: return body(Silu{});
    case Activation::sigmoid: return body(Sigmoid{});
    case Activation::tanh: return body(Tanh{});
  }
}

template <class T>
SACCADE_INLINE void add_block(const T* x1, const T* x2, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x1[i] + x2[i];
}

template <class T>
SACCADE_INLINE void activate_block(Activation f, const T* x, T* y, int64_t n) {
  choose(f, [&](auto fn) SACCADE_INLINE_LAMBDA {
    for (int64_t i = 0; i < n; ++i) y[i] = fn.at(x[i]).value;
  });
}

template <class T>
SACCADE_INLINE void activate_backward_block(Activation f, const T* x, const T* dy, T* dx, bool add, int64_t n) {
  choose(f, [&](auto fn) SACCADE_INLINE_LAMBDA {
    if (add)
      for (int64_t i = 0; i < n; ++i) dx[i] += dy[i] * fn.at(x[i]).slope;
    else
      for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * fn.at(x[i]).slope;
  });
}

template <class T>
SACCADE_INLINE void gated_block(Activation f, const T* gate, const T* up, T* y, int64_t n) {
  choose(f, [&](auto fn) SACCADE_INLINE_LAMBDA {
    for (int64_t i = 0; i < n; ++i) y[i] = fn.at(gate[i]).value * up[i];
  });
}

/// d_gate, d_up: where to write, null when not wanted.
template <class T>
SACCADE_INLINE void gated_backward_block(Activation f, const T* gate, const T* up, const T* dy, T* d_gate, bool add_gate, T* d_up,
                                         bool add_up, int64_t n) {
  choose(f, [&](auto fn) SACCADE_INLINE_LAMBDA {
    if (d_gate && d_up && !add_gate && !add_up) {
      for (int64_t i = 0; i < n; ++i) {
        const Point<T> p = fn.at(gate[i]);
        const T d = dy[i];
        d_gate[i] = d * up[i] * p.slope;
        d_up[i] = d * p.value;
      }
      return;
    }
    for (int64_t i = 0; d_gate && i < n; ++i) d_gate[i] = (add_gate ? d_gate[i] : T(0)) + dy[i] * up[i] * fn.at(gate[i]).slope;
    for (int64_t i = 0; d_up && i < n; ++i) d_up[i] = (add_up ? d_up[i] : T(0)) + dy[i] * fn.at(gate[i]).value;
  });
}

#define ENTRY_POINTS(T)                                                                                                          \
  SACCADE_SIMD void add_run(const T* x1, const T* x2, T* y, int64_t n) { add_block(x1, x2, y, n); }                              \
  SACCADE_SIMD void activate_run(Activation f, const T* x, T* y, int64_t n) { activate_block(f, x, y, n); }                      \
  SACCADE_SIMD void activate_backward_run(Activation f, const T* x, const T* dy, T* dx, bool add, int64_t n) {                   \
    activate_backward_block(f, x, dy, dx, add, n);                                                                               \
  }                                                                                                                              \
  SACCADE_SIMD void gated_run(Activation f, const T* gate, const T* up, T* y, int64_t n) { gated_block(f, gate, up, y, n); }     \
  SACCADE_SIMD void gated_backward_run(Activation f, const T* gate, const T* up, const T* dy, T* d_gate, bool add_gate, T* d_up, \
                                       bool add_up, int64_t n) {                                                                 \
    gated_backward_block(f, gate, up, dy, d_gate, add_gate, d_up, add_up, n);                                                    \
  }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
#undef ENTRY_POINTS

}  // namespace
}  // namespace cpu

namespace {

Cost cost(const Tensor& x, double flops, int tensors) {
  return {flops * static_cast<double>(x.size()), static_cast<double>(tensors * x.bytes())};
}

/// Runs body(T of the dtype, begin, end) over all elements on all threads.
template <class Body>
void over(const Tensor& x, Body body) {
  dispatch(x.dtype(),
           [&](auto zero) { parallel_ranges(x.size(), cpu::kGrain, [&](int64_t begin, int64_t end) { body(zero, begin, end); }); });
}

}  // namespace

double flops_of(Activation f) {
  switch (f) {
    case Activation::none: return 0;
    case Activation::relu: return 1;
    case Activation::relu2: return 2;
    case Activation::silu: return 4;
    case Activation::sigmoid: return 3;
    case Activation::tanh: return 4;
    case Activation::gelu: return 18;
  }
  return 0;
}

Activation parse_activation(const std::string& name) {
  if (name == "none") return Activation::none;
  if (name == "gelu") return Activation::gelu;
  if (name == "relu") return Activation::relu;
  if (name == "relu2") return Activation::relu2;
  if (name == "silu") return Activation::silu;
  if (name == "sigmoid") return Activation::sigmoid;
  if (name == "tanh") return Activation::tanh;
  throw UsageError("activation is \"" + name + "\", expected none, gelu, relu, relu2, silu, sigmoid or tanh");
}

Tensor add(Tape& tape, const Tensor& x1, const Tensor& x2) {
  expect(x1.shape() == x2.shape() && x1.dtype() == x2.dtype(), "add", "x1 is ", x1, " ", x1.dtype(), ", x2 is ", x2, " ", x2.dtype());
  Tensor y = tape.empty(x1.shape(), x1.dtype());
  tape.run(
      "add", cost(x1, 1, 3),
      [&] {
        over(x1, [&](auto zero, int64_t begin, int64_t end) {
          using T = decltype(zero);
          cpu::add_run(x1.data<T>() + begin, x2.data<T>() + begin, y.data<T>() + begin, end - begin);
        });
      },
      [&] { cuda::add(tape.stream(), x1, x2, y); });
  tape.record({x1, x2}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    t.add_grad(x1, dy);
    t.add_grad(x2, dy);
  });
  return y;
}

Tensor scaled(Tape& tape, const Tensor& x, const Tensor& factor) {
  expect(factor.size() == 1 && factor.dtype() == x.dtype() && x.dtype() != DType::bf16, "scaled", "x is ", x, " ", x.dtype(),
         ", factor is ", factor, " ", factor.dtype(), "; expected one number, f32 or f64");
  Tensor y = tape.empty(x.shape(), x.dtype());
  const auto into = [=](Tape& t, const GradTarget& to, const Tensor& from) {
    t.run(
        "scaled", cost(from, 1, 2),
        [&] {
          over(from, [&](auto zero, int64_t begin, int64_t end) {
            using T = decltype(zero);
            const T number = *factor.data<T>();
            for (int64_t i = begin; i < end; ++i)
              to.tensor.data<T>()[i] = (to.add ? to.tensor.data<T>()[i] : T(0)) + number * from.data<T>()[i];
          });
        },
        [&] { cuda::scale_into(t.stream(), to.tensor, to.add, from, factor); });
  };
  into(tape, {y, false}, x);
  tape.record({x}, {&y}, [=](Tape& t) {
    if (const GradTarget to = t.grad_target(x)) into(t, to, t.grad(y));
  });
  return y;
}

Tensor activate(Tape& tape, const Tensor& x, Activation f) {
  Tensor y = tape.empty(x.shape(), x.dtype());
  tape.run(
      "activate", cost(x, flops_of(f), 2),
      [&] {
        over(x, [&](auto zero, int64_t begin, int64_t end) {
          using T = decltype(zero);
          cpu::activate_run(f, x.data<T>() + begin, y.data<T>() + begin, end - begin);
        });
      },
      [&] { cuda::activate(tape.stream(), f, x, y); });
  tape.record({x}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget dx = t.grad_target(x);
    if (!dx) return;
    t.run(
        "activate.backward", cost(x, flops_of(f) + 1, 3),
        [&] {
          over(x, [&](auto zero, int64_t begin, int64_t end) {
            using T = decltype(zero);
            cpu::activate_backward_run(f, x.data<T>() + begin, dy.data<T>() + begin, dx.tensor.data<T>() + begin, dx.add, end - begin);
          });
        },
        [&] { cuda::activate_backward(t.stream(), f, x, dy, dx.tensor, dx.add); });
  });
  return y;
}

Tensor gated(Tape& tape, const Tensor& gate, const Tensor& up, Activation f) {
  expect(gate.shape() == up.shape() && gate.dtype() == up.dtype(), "gated", "gate is ", gate, " ", gate.dtype(), ", up is ", up, " ",
         up.dtype());
  expect(gate.id() != up.id(), "gated", "gate and up are one tensor");
  Tensor y = tape.empty(gate.shape(), gate.dtype());
  tape.run(
      "gated", cost(gate, flops_of(f) + 1, 3),
      [&] {
        over(gate, [&](auto zero, int64_t begin, int64_t end) {
          using T = decltype(zero);
          cpu::gated_run(f, gate.data<T>() + begin, up.data<T>() + begin, y.data<T>() + begin, end - begin);
        });
      },
      [&] { cuda::gated(tape.stream(), f, gate, up, y); });
  tape.record({gate, up}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget d_gate = t.grad_target(gate), d_up = t.grad_target(up);
    t.run(
        "gated.backward", cost(gate, flops_of(f) + 5, 5),
        [&] {
          over(gate, [&](auto zero, int64_t begin, int64_t end) {
            using T = decltype(zero);
            const auto at = [&](const GradTarget& target) { return target ? target.tensor.data<T>() + begin : nullptr; };
            cpu::gated_backward_run(f, gate.data<T>() + begin, up.data<T>() + begin, dy.data<T>() + begin, at(d_gate), d_gate.add, at(d_up),
                                    d_up.add, end - begin);
          });
        },
        [&] { cuda::gated_backward(t.stream(), f, gate, up, dy, d_gate.tensor, d_gate.add, d_up.tensor, d_up.add); });
  });
  return y;
}

}  // namespace saccade
