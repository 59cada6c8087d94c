#include "kernels/ops/adamw/adamw.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/simd.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/adamw/adamw_cuda.h"

namespace saccade {
namespace cpu {
namespace {

constexpr int64_t kBlock = kNormCut;

/// A piece of one slot: what a task works on.
struct SlotSlice {
  const AdamWSlot* slot;
  int64_t begin, end;
};

std::vector<SlotSlice> slot_slices(const std::vector<AdamWSlot>& slots) {
  std::vector<SlotSlice> all;
  for (const AdamWSlot& slot : slots)
    for (int64_t begin = 0; begin < slot.value.size(); begin += kBlock)
      all.push_back({&slot, begin, std::min(begin + kBlock, slot.value.size())});
  return all;
}

template <class T>
SACCADE_INLINE double squares_of(const T* x, int64_t n) {
  return lane_sum<double>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return static_cast<double>(x[i]) * static_cast<double>(x[i]); });
}
SACCADE_SIMD double squares(const float* x, int64_t n) { return squares_of(x, n); }
SACCADE_SIMD double squares(const double* x, int64_t n) { return squares_of(x, n); }

/// The update of one step with everything folded that is the same for all elements.
template <class T>
struct Update {
  T scale, beta1, beta2, rest1, rest2, step_size, inverse_correction2, eps, shrink;
};

template <class T>
SACCADE_INLINE void update_block(const Update<T>& u, const T* grad, T* m, T* v, T* w, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T g = grad[i] * u.scale;
    m[i] = u.beta1 * m[i] + u.rest1 * g;
    v[i] = u.beta2 * v[i] + u.rest2 * g * g;
    w[i] = w[i] * u.shrink - u.step_size * m[i] / (fast_sqrt(v[i] * u.inverse_correction2) + u.eps);
  }
}
SACCADE_SIMD void update(const Update<float>& u, const float* grad, float* m, float* v, float* w, int64_t n) {
  update_block(u, grad, m, v, w, n);
}
SACCADE_SIMD void update(const Update<double>& u, const double* grad, double* m, double* v, double* w, int64_t n) {
  update_block(u, grad, m, v, w, n);
}

void gradient_squares(const std::vector<AdamWSlot>& slots, double* partial) {
  const std::vector<SlotSlice> all = slot_slices(slots);
  parallel_for(static_cast<int64_t>(all.size()), [&](int64_t i) {
    const auto& [slot, begin, end] = all[static_cast<size_t>(i)];
    dispatch(slot->grad.dtype(),
             [&, b = begin, e = end, s = slot](auto zero) { partial[i] = squares(s->grad.data<decltype(zero)>() + b, e - b); });
  });
}

void norm_of_squares(const double* partial, int64_t count, double* norm) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += partial[i];
  *norm = std::sqrt(sum);
}

void adamw_step(const std::vector<AdamWSlot>& slots, const AdamW& o, const double* rates, double clip, double norm) {
  if (!std::isfinite(norm)) return;
  const double learning_rate = rates[0], correction1 = rates[1], correction2 = rates[2];
  const double scale = clip > 0 && norm > clip ? clip / norm : 1.0;
  const std::vector<SlotSlice> all = slot_slices(slots);
  parallel_for(static_cast<int64_t>(all.size()), [&](int64_t i) {
    const SlotSlice& piece = all[static_cast<size_t>(i)];
    const AdamWSlot& slot = *piece.slot;
    dispatch(slot.value.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const double rate = learning_rate * slot.rate, shrink = 1 - (slot.decay ? rate * o.weight_decay : 0.0);
      const Update<T> u{static_cast<T>(scale),           static_cast<T>(o.beta1),     static_cast<T>(o.beta2),
                        static_cast<T>(1 - o.beta1),     static_cast<T>(1 - o.beta2), static_cast<T>(rate / correction1),
                        static_cast<T>(1 / correction2), static_cast<T>(o.eps),       static_cast<T>(shrink)};
      update(u, slot.grad.data<T>() + piece.begin, slot.first_moment.data<T>() + piece.begin, slot.second_moment.data<T>() + piece.begin,
             slot.value.data<T>() + piece.begin, piece.end - piece.begin);
    });
  });
}

}  // namespace
}  // namespace cpu

namespace {

void check(const AdamWSlot& slot, const std::vector<Tensor>& alike, const char* op) {
  for (const Tensor& x : alike)
    expect(x && x.shape() == slot.value.shape() && x.dtype() == slot.value.dtype(), op, "value is ", slot.value, ", gradient or moment is ",
           x);
}

void check_norm(const Tensor& norm, const char* op) {
  expect(norm.size() == 1 && norm.dtype() == DType::f64, op, "norm is ", norm, " ", norm.dtype(), ", expected f64 [1]");
}

/// Cost of going over all slots with so many FLOPs and tensors read or written an element.
Cost cost(const std::vector<AdamWSlot>& slots, double flops, int tensors) {
  Cost sum;
  for (const AdamWSlot& slot : slots) {
    sum.flops += flops * static_cast<double>(slot.value.size());
    sum.bytes += static_cast<double>(tensors * slot.value.bytes());
  }
  return sum;
}

}  // namespace

int64_t norm_pieces(Device device, const std::vector<AdamWSlot>& slots) {
  const int64_t piece = device.targets_cuda() ? kAdamWSlice : cpu::kBlock;
  int64_t count = 0;
  for (const AdamWSlot& slot : slots) count += (slot.value.size() + piece - 1) / piece;
  return count;
}

void gradient_squares(Tape& tape, const std::vector<AdamWSlot>& slots, const Tensor& squares) {
  for (const AdamWSlot& slot : slots) check(slot, {slot.grad}, "gradient_squares");
  if (slots.empty()) return;
  expect(squares && squares.dtype() == DType::f64 && squares.size() == norm_pieces(tape.device(), slots), "gradient_squares",
         "squares are ", squares, ", expected f64 of ", norm_pieces(tape.device(), slots), " pieces");
  tape.run(
      "gradient_squares", cost(slots, 2, 1), [&] { cpu::gradient_squares(slots, squares.data<double>()); },
      [&] { cuda::gradient_squares(tape.stream(), slots, squares); });
}

void norm_of_squares(Tape& tape, const Tensor& squares, const Tensor& norm) {
  check_norm(norm, "norm_of_squares");
  tape.run(
      "norm_of_squares", {}, [&] { cpu::norm_of_squares(squares.data<double>(), squares.size(), norm.data<double>()); },
      [&] { cuda::norm_of_squares(tape.stream(), squares, norm); });
}

void gradient_norm(Tape& tape, const std::vector<AdamWSlot>& slots, const Tensor& norm) {
  for (const AdamWSlot& slot : slots) check(slot, {slot.grad}, "gradient_norm");
  check_norm(norm, "gradient_norm");
  const int64_t pieces = norm_pieces(tape.device(), slots);
  const Tensor squares = tape.device().targets_cuda() ? tape.empty({pieces}, DType::f64) : Tensor();
  tape.run(
      "gradient_norm", cost(slots, 2, 1),
      [&] {
        std::vector<double> partial(static_cast<size_t>(pieces));
        cpu::gradient_squares(slots, partial.data());
        cpu::norm_of_squares(partial.data(), pieces, norm.data<double>());
      },
      [&] {
        cuda::gradient_squares(tape.stream(), slots, squares);
        cuda::norm_of_squares(tape.stream(), squares, norm);
      });
}

std::array<double, 3> adamw_rates(const AdamW& options, double learning_rate, int64_t step) {
  expect(step >= 1, "adamw_rates", "step is ", step, ", counted from 1");
  const auto t = static_cast<double>(step);
  return {learning_rate, 1 - std::pow(options.beta1, t), 1 - std::pow(options.beta2, t)};
}

void adamw_step(Tape& tape, const std::vector<AdamWSlot>& slots, const AdamW& options, const Tensor& rates, double clip,
                const Tensor& norm) {
  for (const AdamWSlot& slot : slots) check(slot, {slot.grad, slot.first_moment, slot.second_moment}, "adamw_step");
  check_norm(norm, "adamw_step");
  expect(rates.size() == 3 && rates.dtype() == DType::f64, "adamw_step", "rates are ", rates, " ", rates.dtype(), ", expected f64 [3]");
  if (slots.empty()) return;
  tape.run(
      "adamw_step", cost(slots, 15, 7), [&] { cpu::adamw_step(slots, options, rates.data<double>(), clip, *norm.data<double>()); },
      [&] { cuda::adamw_step(tape.stream(), slots, options, rates, clip, norm); });
}

}  // namespace saccade
