#include "kernels/ops/avey/fuser.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/engine/cuda_basic.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/avey/activation.h"
#include "kernels/ops/avey/gate_cuda.h"
#include "kernels/ops/avey/linear_cuda.h"
#include "kernels/ops/avey/processor_stages.h"
#include "kernels/ops/avey/sums.h"
#include "kernels/ops/linear/gemm_cuda.h"
#include "kernels/ops/linear/tall_products_cuda.h"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade::avey {
namespace {

constexpr int64_t kBlock = 256;

template <class T>
SACCADE_INLINE void gate_impl(const T* y, const T* l, T* gated, int64_t n, Activation f) {
  with_activation(f, [&](auto a) SACCADE_INLINE_LAMBDA {
    for (int64_t i = 0; i < n; ++i) gated[i] = activation_value<a()>(y[i]) * l[i];
  });
}
SACCADE_SIMD void gate(const float* y, const float* l, float* gated, int64_t n, Activation f) { gate_impl(y, l, gated, n, f); }
SACCADE_SIMD void gate(const double* y, const double* l, double* gated, int64_t n, Activation f) { gate_impl(y, l, gated, n, f); }

/// From d_gated: d_y, d_l, and the gated value itself once more, in the place of d_gated.
template <class T>
SACCADE_INLINE void gate_backward_impl(T* d_gated, const T* y, const T* l, T* d_y, bool add_y, T* d_l, bool add_l, int64_t n,
                                       Activation f) {
  with_activation(f, [&](auto a) SACCADE_INLINE_LAMBDA {
    for (int64_t i = 0; i < n; ++i) {
      const T d = d_gated[i], value = activation_value<a()>(y[i]);
      if (d_y) d_y[i] = (add_y ? d_y[i] : T(0)) + d * l[i] * activation_slope<a()>(y[i]);
      if (d_l) d_l[i] = (add_l ? d_l[i] : T(0)) + d * value;
      d_gated[i] = value * l[i];
    }
  });
}
SACCADE_SIMD void gate_backward(float* d, const float* y, const float* l, float* d_y, bool add_y, float* d_l, bool add_l, int64_t n,
                                Activation f) {
  gate_backward_impl(d, y, l, d_y, add_y, d_l, add_l, n, f);
}
SACCADE_SIMD void gate_backward(double* d, const double* y, const double* l, double* d_y, bool add_y, double* d_l, bool add_l, int64_t n,
                                Activation f) {
  gate_backward_impl(d, y, l, d_y, add_y, d_l, add_l, n, f);
}

template <class T>
SACCADE_INLINE void add_bias_impl(const T* h, const T* bias, T* y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) y[r * columns + c] = h[r * columns + c] + bias[c];
}
SACCADE_SIMD void add_bias(const float* h, const float* bias, float* y, int64_t rows, int64_t columns) {
  add_bias_impl(h, bias, y, rows, columns);
}
SACCADE_SIMD void add_bias(const double* h, const double* bias, double* y, int64_t rows, int64_t columns) {
  add_bias_impl(h, bias, y, rows, columns);
}

struct Sizes {
  int64_t R, Q, D, gated, head;
  Activation f;
  int64_t width() const { return gated + head; }
};

template <class T>
void forward(const Sizes& s, const T* h, const T* Y, const T* l, const T* head, const T* weight, const T* bias, T* y) {
  parallel_ranges(s.Q, kBlock, [&](int64_t begin, int64_t end) {
    thread_local std::vector<T> gated;
    const int64_t rows = end - begin;
    gated.resize(static_cast<size_t>(rows * s.gated));
    gate(Y + begin * s.gated, l + begin * s.gated, gated.data(), rows * s.gated, s.f);
    T* to = y + begin * s.D;
    add_bias(h + (s.R - s.Q + begin) * s.D, bias, to, rows, s.D);
    cpu::gemm_serial<T>(false, true, rows, s.D, s.gated, 1, gated.data(), s.gated, weight, s.width(), true, to, s.D);
    if (s.head)
      cpu::gemm_serial<T>(false, true, rows, s.D, s.head, 1, head + begin * s.head, s.head, weight + s.gated, s.width(), true, to, s.D);
  });
}

/// `gated` receives f(Y) * Z_l for the gradient of the weight.
template <class T>
void backward(const Sizes& s, const T* dy, const T* Y, const T* l, const T* weight, T* gated, T* d_Y, bool add_Y, T* d_l, bool add_l,
              T* d_head, bool add_head) {
  parallel_ranges(s.Q, kBlock, [&](int64_t begin, int64_t end) {
    const int64_t rows = end - begin, at = begin * s.gated;
    cpu::gemm_serial<T>(false, false, rows, s.gated, s.D, 1, dy + begin * s.D, s.D, weight, s.width(), false, gated + at, s.gated);
    gate_backward(gated + at, Y + at, l + at, d_Y ? d_Y + at : nullptr, add_Y, d_l ? d_l + at : nullptr, add_l, rows * s.gated, s.f);
    if (d_head)
      cpu::gemm_serial<T>(false, false, rows, s.head, s.D, 1, dy + begin * s.D, s.D, weight + s.gated, s.width(), add_head,
                          d_head + begin * s.head, s.head);
  });
}

/// Columns `first` … of a matrix with the fuser's row stride.
cuda::Matrix columns(const Sizes& s, const Tensor& weight, int64_t first) {
  return {static_cast<char*>(weight.raw()) + first * byte_size(weight.dtype()), weight.dtype(), s.width(), 0};
}

void cuda_forward(const Tape& tape, const Sizes& s, const Tensor& h, const Tensor& Y, const EnrichedStage& z, const Tensor& weight,
                  const Tensor& bias, const Tensor& gated, bool made, const Tensor& y) {
  const Tensor w = tape.compute_copy(weight);
  const int device = tape.device().index;
  if (!made) cuda::gate(tape.stream(), s.f, Y, z.l, gated);
  const Tensor last = h.slice(s.R - s.Q, s.R);
  if (cuda::fuse_product(device, last, gated, z.h, w, bias, y)) return;
  cuda::add_bias(tape.stream(), last, bias, y);
  cuda::gemm(device, false, true, s.Q, s.D, s.gated, 1, cuda::matrix(gated, s.gated), columns(s, w, 0), true, cuda::matrix(y, s.D));
  if (s.head)
    cuda::gemm(device, false, true, s.Q, s.D, s.head, 1, cuda::matrix(z.h, s.head), columns(s, w, s.gated), true, cuda::matrix(y, s.D));
}

struct Targets {
  GradTarget Y, l, head, weight, bias, shift;
};

/// Gradients of Y and of Z's parts by products alone.
void cuda_backward_inputs(const Tape& tape, const Sizes& s, const Tensor& dy, const Tensor& Y, const EnrichedStage& z, const Tensor& w,
                          const Tensor& d_gated, const Targets& d, const Tensor& sums) {
  const int device = tape.device().index;
  const cuda::Matrix of_dy = cuda::matrix(dy, s.D);
  cuda::gemm(device, false, false, s.Q, s.gated, s.D, 1, of_dy, columns(s, w, 0), false, cuda::matrix(d_gated, s.gated));
  cuda::gate_backward(tape.stream(), s.f, d_gated, Y, z.l, d.Y.tensor, d.Y.add, d.l.tensor, d.l.add, z.slope);
  if (d.head)
    cuda::gemm(device, false, false, s.Q, s.head, s.D, 1, of_dy, columns(s, w, s.gated), d.head.add, cuda::matrix(d.head.tensor, s.head));
  if (z.slope != Activation::none && d.head) cuda::times_slope(tape.stream(), z.slope, d.head.tensor, z.h, true);
  if (!d.shift) return;
  cuda::sum_rows(tape.stream(), d.l.tensor, d.shift.tensor.slice(0, s.gated), d.shift.add, sums);
  if (d.head) cuda::sum_rows(tape.stream(), d.head.tensor, d.shift.tensor.slice(s.gated, s.width()), d.shift.add, sums);
}

void cuda_backward_weights(const Tape& tape, const Sizes& s, const Tensor& dy, const Tensor& gated, const Tensor& head, const Targets& d,
                           const Tensor& sums) {
  const int device = tape.device().index;
  const cuda::Matrix of_dy = cuda::matrix(dy, s.D);
  if (d.weight)
    cuda::gemm(device, true, false, s.D, s.gated, s.Q, 1, of_dy, cuda::matrix(gated, s.gated), d.weight.add,
               columns(s, d.weight.tensor, 0));
  if (d.weight && s.head)
    cuda::gemm(device, true, false, s.D, s.head, s.Q, 1, of_dy, cuda::matrix(head, s.head), d.weight.add,
               columns(s, d.weight.tensor, s.gated));
  if (d.bias) cuda::sum_rows(tape.stream(), dy, d.bias.tensor, d.bias.add, sums);
}

void cuda_backward(const Tape& tape, const Sizes& s, const Tensor& dy, const Tensor& Y, const EnrichedStage& z, const Tensor& weight,
                   const Tensor& gated, const Tensor& d_gated, const Targets& d, const Tensor& sums, const Tensor& products) {
  const Tensor w = tape.compute_copy(weight);
  const bool fresh = d.Y && d.l && !d.Y.add && !d.l.add && (!s.head || (d.head && !d.head.add));
  expect(fresh || z.slope == Activation::none, "avey.fuse", "gradients of Z's parts with a slope are made once");
  const Tensor parts = d.shift ? sums.slice(0, cuda::row_sum_parts(s.Q) * s.width()) : Tensor();
  const int device = tape.device().index;
  const bool inputs = fresh && s.f == Activation::none &&
                      cuda::fuse_product_backward(device, dy, w, {Y, z.l, z.h}, {d.Y.tensor, d.l.tensor, d.head.tensor}, z.slope, parts);
  if (!inputs) cuda_backward_inputs(tape, s, dy, Y, z, w, d_gated, d, sums);
  std::vector<cuda::TallSum> shift;
  if (inputs && parts) shift.push_back({parts, d.shift});
  std::vector<cuda::TallProduct> tall;
  if (d.weight) tall.push_back({dy, gated, columns(s, d.weight.tensor, 0), d.weight.add, s.head ? GradTarget{} : d.bias});
  if (d.weight && s.head) tall.push_back({dy, z.h, columns(s, d.weight.tensor, s.gated), d.weight.add, d.bias});
  if (d.weight && cuda::tall_products(device, tall, shift, products)) return;
  if (!shift.empty()) cuda::sum_parts(tape.stream(), parts, d.shift.tensor, d.shift.add);
  cuda_backward_weights(tape, s, dy, gated, z.h, d, sums);
}

/// The residual's share: all of dy where every row went through, else into the last Q rows.
void residual_backward(Tape& t, const Sizes& s, const Tensor& h, const Tensor& dy) {
  if (s.Q == s.R) return t.add_grad(h, dy);
  const GradTarget dh = t.grad_target(h);
  if (!dh) return;
  t.run(
      "avey.fuse.residual", {static_cast<double>(dy.size()), static_cast<double>(h.bytes() + dy.bytes())},
      [&] {
        dispatch(h.dtype(), [&](auto zero) {
          using T = decltype(zero);
          T* to = dh.tensor.data<T>();
          if (!dh.add) std::fill(to, to + h.size(), T(0));
          const T* from = dy.data<T>();
          T* last = to + (s.R - s.Q) * s.D;
          for (int64_t i = 0; i < dy.size(); ++i) last[i] += from[i];
        });
      },
      [&] {
        if (!dh.add) cuda::fill_bytes(t.stream(), dh.tensor.raw(), 0, dh.tensor.bytes());
        cuda::add_into(t.stream(), dh.tensor.slice(s.R - s.Q, s.R), dy);
      });
}

}  // namespace

Tensor fuse(Tape& tape, const Tensor& h, const Tensor& Y, const Enriched& z, const Tensor& weight, const Tensor& bias, Activation f) {
  return fuse_stage(tape, h, Y, {z}, weight, bias, f, {});
}

Tensor fuse_stage(Tape& tape, const Tensor& h, const Tensor& Y, const EnrichedStage& z, const Tensor& weight, const Tensor& bias,
                  Activation f, const Tensor& made) {
  const Sizes s{h.dim(0), Y.dim(0), h.dim(1), Y.dim(1), z.h ? z.h.dim(1) : 0, f};
  expect(h.rank() == 2 && Y.shape() == z.l.shape() && s.Q <= s.R && weight.shape() == Shape{s.D, s.width()} && bias.size() == s.D,
         "avey.fuse", "h is ", h, ", Y is ", Y, ", Z_l is ", z.l, ", Z_h is ", z.h, ", weight is ", weight, ", bias is ", bias);
  const Tensor l = z.l, head = z.h;
  Tensor y = tape.empty({s.Q, s.D}, h.dtype());
  const double products = static_cast<double>(s.Q * s.D * s.width());
  const double bytes = static_cast<double>(2 * y.bytes() + 2 * Y.bytes() + (head ? head.bytes() : 0) + weight.bytes());
  const bool on_cuda = tape.device().targets_cuda();
  expect(z.slope == Activation::none || f != Activation::none || made.id() == Y.id(), "avey.fuse", "with a slope of Z_l, Y is Y * Z_l");
  const Tensor gated = made || !on_cuda ? made : tape.empty({s.Q, s.gated}, h.dtype());
  tape.run(
      "avey.fuse", {2 * products, bytes},
      [&] {
        dispatch(h.dtype(), [&](auto zero) {
          using T = decltype(zero);
          forward<T>(s, h.data<T>(), Y.data<T>(), l.data<T>(), head ? head.data<T>() : nullptr, weight.data<T>(), bias.data<T>(),
                     y.data<T>());
        });
      },
      [&] { cuda_forward(tape, s, h, Y, z, weight, bias, gated, static_cast<bool>(made), y); });
  tape.record({h, Y, l, head, weight, bias, z.shift}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget dY = t.grad_target(Y), dl = t.grad_target(l), dhead = t.grad_target(head);
    const GradTarget dw = t.grad_target(weight), db = t.grad_target(bias), dshift = t.grad_target(z.shift);
    {
      const Tensor d_gated = t.empty({s.Q, s.gated}, h.dtype());
      const WeightGradient of_gated(t, on_cuda ? 1 : s.Q, s.D, s.gated, h.dtype()), of_head(t, on_cuda ? 1 : s.Q, s.D, s.head, h.dtype());
      const int64_t parts = dshift ? std::max(cuda::kSumParts, cuda::row_sum_parts(s.Q)) * s.width() : 0;
      const Tensor sums = on_cuda ? t.empty({std::max(cuda::kSumParts * s.D, parts)}, DType::f32) : Tensor();
      const int64_t products_size = on_cuda && dw ? cuda::tall_scratch(weight.size()) : 0;
      const Tensor of_products = products_size ? t.empty({products_size}, DType::f32) : Tensor();
      t.run(
          "avey.fuse.backward", {4 * products, 2 * bytes},
          [&] {
            dispatch(h.dtype(), [&](auto zero) {
              using T = decltype(zero);
              const auto data = [](const GradTarget& target) { return target ? target.tensor.data<T>() : nullptr; };
              backward<T>(s, dy.data<T>(), Y.data<T>(), l.data<T>(), weight.data<T>(), d_gated.data<T>(), data(dY), dY.add, data(dl),
                          dl.add, data(dhead), dhead.add);
              if (dw) of_gated(dy.data<T>(), d_gated.data<T>(), data(dw), s.width(), dw.add);
              if (dw && s.head) of_head(dy.data<T>(), head.data<T>(), data(dw) + s.gated, s.width(), dw.add);
              if (db) column_sums(dy.data<T>(), s.Q, s.D, data(db), db.add);
            });
          },
          [&] {
            cuda_backward(t, s, dy, Y, z, weight, gated, d_gated, {dY, dl, dhead, dw, db, dshift}, sums, of_products);
          });
    }
    residual_backward(t, s, h, dy);
  });
  return y;
}

}  // namespace saccade::avey
