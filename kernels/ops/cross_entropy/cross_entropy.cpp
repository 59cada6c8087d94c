#include "kernels/ops/cross_entropy/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/simd.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/cross_entropy/cross_entropy_cuda.h"
#include "kernels/ops/elementwise/elementwise_cuda.h"
#include "kernels/ops/linear/gemm_cuda.h"

namespace saccade {
namespace cpu {
namespace {

/// Rows whose logits exist at a time: few enough for memory, enough that d_weight is passed over seldom.
int64_t block_rows(int64_t rows, int64_t vocabulary) {
  return std::min(rows, std::clamp<int64_t>((int64_t{1} << 22) / vocabulary, 128, 2048));
}

constexpr int64_t kTaskRows = 128;  ///< rows whose logits stay in a core's cache between product, softmax and product

template <class T>
SACCADE_INLINE T largest(const T* x, int64_t n) {
  constexpr int kLanes = 16;
  T lanes[kLanes];
  for (T& lane : lanes) lane = x[0];
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lanes[l] = fast_max(x[i + l], lanes[l]);
  for (; i < n; ++i) lanes[0] = fast_max(x[i], lanes[0]);
  return *std::max_element(lanes, lanes + kLanes);
}

/// The first x[i] that equals `value`; the last index when none does (NaN).
template <class T>
SACCADE_INLINE int32_t first_of(const T* x, int32_t n, T value) {
  int32_t first = n - 1;
  for (int32_t i = 0; i < n; ++i) {
    const int32_t at = x[i] == value ? i : n;
    first = at < first ? at : first;  // std::min would not be vectorised
  }
  return first;
}

/// logits → −ln softmax(logits)[target] per row; logits are left as (softmax − onehot + penalty · largest, where it is) · scale.
/// A row with target −1: loss 0, logits left as zeros.
template <class T>
SACCADE_INLINE void softmax_rows(T* logits, const int32_t* targets, T* losses, int64_t rows, int64_t n, double scale, double penalty) {
  for (int64_t r = 0; r < rows; ++r, logits += n) {
    if (targets[r] < 0) {
      losses[r] = 0;
      std::fill(logits, logits + n, T(0));
      continue;
    }
    const T top = largest(logits, n), wanted = logits[targets[r]];
    const int32_t winner = penalty > 0 ? first_of(logits, static_cast<int32_t>(n), top) : 0;
    for (int64_t i = 0; i < n; ++i) logits[i] = fast_exp(logits[i] - top);
    const T sum = lane_sum<T>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return logits[i]; });
    losses[r] = top + std::log(sum) - wanted;
    const T factor = static_cast<T>(scale) / sum;
    for (int64_t i = 0; i < n; ++i) logits[i] *= factor;
    logits[targets[r]] -= static_cast<T>(scale);
    if (penalty > 0) logits[winner] += static_cast<T>(scale * penalty) * top;
  }
}
SACCADE_SIMD void softmax(float* logits, const int32_t* targets, float* losses, int64_t rows, int64_t n, double scale, double penalty) {
  softmax_rows(logits, targets, losses, rows, n, scale, penalty);
}
SACCADE_SIMD void softmax(double* logits, const int32_t* targets, double* losses, int64_t rows, int64_t n, double scale, double penalty) {
  softmax_rows(logits, targets, losses, rows, n, scale, penalty);
}

void check_targets(const Tensor& targets, int64_t vocabulary) {
  const int32_t* t = targets.data<int32_t>();
  for (int64_t i = 0; i < targets.size(); ++i)
    if (t[i] < -1 || t[i] >= vocabulary)
      throw DataError("[linear_cross_entropy] target " + std::to_string(t[i]) + " at position " + std::to_string(i) +
                      " is outside the vocabulary of " + std::to_string(vocabulary));
}

/// d_hidden and d_weight: of the mean loss, empty when not wanted.
struct Buffers {
  Tensor logits, d_hidden, d_weight;
};

template <class T>
void cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& targets, const CrossEntropy& loss, const Buffers& buffers,
                   double penalty) {
  const int64_t vocabulary = weight.dim(0), width = weight.dim(1), rows = targets.size(), step = buffers.logits.dim(0);
  check_targets(targets, vocabulary);
  const T *h = hidden.data<T>(), *w = weight.data<T>();
  T *logits = buffers.logits.data<T>(), *tokens = loss.tokens.data<T>();
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    parallel_ranges(count, kTaskRows, [&](int64_t begin, int64_t end) {
      const int64_t m = end - begin, at = first + begin;
      T* p = logits + begin * vocabulary;
      gemm_serial<T>(false, true, m, vocabulary, width, 1, h + at * width, width, w, width, false, p, vocabulary);
      softmax(p, targets.data<int32_t>() + at, tokens + at, m, vocabulary, 1.0 / static_cast<double>(rows), penalty);
      if (buffers.d_hidden)
        gemm_serial<T>(false, false, m, width, vocabulary, 1, p, vocabulary, w, width, false, buffers.d_hidden.data<T>() + at * width,
                       width);
    });
    if (buffers.d_weight)
      gemm<T>(true, false, vocabulary, width, count, 1, logits, vocabulary, h + first * width, width, first > 0, buffers.d_weight.data<T>(),
              width);
  }
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i) sum += static_cast<double>(tokens[i]);
  *loss.mean.data<T>() = static_cast<T>(sum / static_cast<double>(rows));
}

/// to (+)= factor · from; to and from may be one.
template <class T>
void scale_into(const Tensor& to, bool add, const Tensor& from, T factor) {
  T* values = to.data<T>();
  const T* terms = from.data<T>();
  parallel_ranges(to.size(), 1 << 15, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) values[i] = (add ? values[i] : T(0)) + terms[i] * factor;
  });
}

}  // namespace
}  // namespace cpu

namespace {

/// A GPU wants fewer, larger products: up to 512 MiB of bf16 logits at a time.
int64_t block_rows(Device device, int64_t rows, int64_t vocabulary) {
  if (!device.targets_cuda()) return cpu::block_rows(rows, vocabulary);
  return std::min(rows, std::max<int64_t>(256, (int64_t{1} << 28) / vocabulary / 256 * 256));
}

/// The same blocks on the GPU: logits of a block of rows by a matrix product, softmax in place, two products for the gradients.
void on_cuda(Tape& tape, const Tensor& hidden, const Tensor& weight, const Tensor& targets, const CrossEntropy& loss,
             const cpu::Buffers& buffers, double penalty) {
  const int device = tape.device().index;
  const Tensor w = tape.compute_copy(weight), flat = hidden.rows_view();
  const int64_t vocabulary = weight.dim(0), width = weight.dim(1), rows = flat.dim(0), step = buffers.logits.dim(0);
  const Tensor d_hidden = buffers.d_hidden ? buffers.d_hidden.rows_view() : Tensor();
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    const Tensor h = flat.slice(first, first + count);
    cuda::gemm(device, false, true, count, vocabulary, width, 1, cuda::matrix(h, width), cuda::matrix(w, width), false,
               cuda::matrix(buffers.logits, vocabulary));
    cuda::softmax_cross_entropy(tape.stream(), buffers.logits, static_cast<const int32_t*>(targets.raw()) + first,
                                static_cast<float*>(loss.tokens.raw()) + first, count, buffers.d_hidden || buffers.d_weight,
                                1.0 / static_cast<double>(rows), penalty);
    if (d_hidden)
      cuda::gemm(device, false, false, count, width, vocabulary, 1, cuda::matrix(buffers.logits, vocabulary), cuda::matrix(w, width), false,
                 cuda::matrix(d_hidden.slice(first, first + count), width));
    if (buffers.d_weight)
      cuda::gemm(device, true, false, vocabulary, width, count, 1, cuda::matrix(buffers.logits, vocabulary), cuda::matrix(h, width),
                 first > 0, cuda::matrix(buffers.d_weight, width));
  }
  cuda::mean(tape.stream(), loss.tokens, loss.mean);
}

}  // namespace

CrossEntropy linear_cross_entropy(Tape& tape, const Tensor& hidden, const Tensor& weight, const Tensor& targets, double max_logit_penalty) {
  const char* op = "linear_cross_entropy";
  expect(
      weight.rank() == 2 && hidden.rank() >= 1 && hidden.dim(-1) == weight.dim(1) && accumulation_dtype(hidden.dtype()) == weight.dtype(),
      op, "hidden is ", hidden, " ", hidden.dtype(), ", weight is ", weight, " ", weight.dtype(),
      "; expected hidden [..., D], weight [V, D]");
  const int64_t vocabulary = weight.dim(0), width = weight.dim(1), rows = hidden.size() / width;
  expect(targets.dtype() == DType::i32 && targets.size() == rows && rows > 0, op, "targets are ", targets, " ", targets.dtype(),
         ", hidden is ", hidden, "; expected one i32 a row");
  expect(max_logit_penalty >= 0, op, "max_logit_penalty is negative; expected 0 or more");
  const DType dtype = hidden.dtype(), exact = accumulation_dtype(dtype);
  CrossEntropy loss{tape.empty({1}, exact), tape.empty({rows}, exact)};
  // The gradients are made while the logits are there: going over them again in backward would double the work.
  cpu::Buffers buffers;
  if (tape.recording() && hidden.differentiable()) buffers.d_hidden = tape.empty(hidden.shape(), dtype);
  if (tape.recording() && weight.differentiable()) buffers.d_weight = tape.empty(weight.shape(), exact);
  buffers.logits = tape.empty({block_rows(tape.device(), rows, vocabulary), vocabulary}, dtype);
  const double products = 1 + (buffers.d_hidden ? 1 : 0) + (buffers.d_weight ? 1 : 0), logits = static_cast<double>(rows * vocabulary);
  const double bytes = static_cast<double>(hidden.bytes() + weight.bytes() + targets.bytes() + loss.tokens.bytes() +
                                           (buffers.d_hidden ? hidden.bytes() : 0) + (buffers.d_weight ? weight.bytes() : 0));
  tape.run(
      op, {products * 2 * logits * static_cast<double>(width) + 5 * logits, bytes},
      [&] {
        dispatch(dtype, [&](auto zero) { cpu::cross_entropy<decltype(zero)>(hidden, weight, targets, loss, buffers, max_logit_penalty); });
      },
      [&] { on_cuda(tape, hidden, weight, targets, loss, buffers, max_logit_penalty); });
  tape.record({hidden, weight}, {&loss.mean}, [=, d_hidden = buffers.d_hidden, d_weight = buffers.d_weight, mean = loss.mean](Tape& t) {
    const Tensor d_mean = t.grad(mean);
    if (d_hidden) {
      t.run(
          "linear_cross_entropy.backward.hidden", {static_cast<double>(d_hidden.size()), 2.0 * static_cast<double>(d_hidden.bytes())},
          [&] {
            dispatch(dtype, [&](auto zero) {
              using T = decltype(zero);
              if (const T factor = *d_mean.data<T>(); factor != T(1)) cpu::scale_into<T>(d_hidden, false, d_hidden, factor);
            });
          },
          [&] { cuda::scale(t.stream(), d_hidden, d_mean); });
      t.add_grad(hidden, d_hidden);
    }
    if (const GradTarget to = d_weight ? t.grad_target(weight) : GradTarget())
      t.run(
          "linear_cross_entropy.backward.weight", {static_cast<double>(d_weight.size()), 3.0 * static_cast<double>(d_weight.bytes())},
          [&] {
            dispatch(dtype, [&](auto zero) {
              using T = decltype(zero);
              cpu::scale_into<T>(to.tensor, to.add, d_weight, *d_mean.data<T>());
            });
          },
          [&] { cuda::scale_into(t.stream(), to.tensor, to.add, d_weight, d_mean); });
  });
  return loss;
}

}  // namespace saccade
