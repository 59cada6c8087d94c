#include "kernels/ops/cross_entropy/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/simd.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/cross_entropy/cross_entropy_cuda.h"
#include "kernels/ops/cross_entropy/targeted_rows.h"
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

/// The place of the first of the largest numbers, NaN passed over; −1 where none is above −∞.
template <class T>
SACCADE_INLINE int32_t place_of_largest(const T* x, int64_t n) {
  T top = -std::numeric_limits<T>::infinity();
  int32_t place = -1;
  for (int64_t i = 0; i < n; ++i)
    if (x[i] > top) top = x[i], place = static_cast<int32_t>(i);
  return place;
}

/// logits → −ln softmax(logits)[target] per row; logits are left as (softmax − onehot + penalty · largest, where it is) · scale.
/// A row with target −1: loss 0, logits left as zeros. places: of the largest logits, where they are wanted, else null.
template <class T>
SACCADE_INLINE void softmax_rows(T* logits, const int32_t* targets, T* losses, int32_t* places, int64_t rows, int64_t n, double scale,
                                 double penalty) {
  for (int64_t r = 0; r < rows; ++r, logits += n) {
    if (places) places[r] = targets[r] < 0 ? -1 : place_of_largest(logits, n);
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
SACCADE_SIMD void softmax(float* logits, const int32_t* targets, float* losses, int32_t* places, int64_t rows, int64_t n, double scale,
                          double penalty) {
  softmax_rows(logits, targets, losses, places, rows, n, scale, penalty);
}
SACCADE_SIMD void softmax(double* logits, const int32_t* targets, double* losses, int32_t* places, int64_t rows, int64_t n, double scale,
                          double penalty) {
  softmax_rows(logits, targets, losses, places, rows, n, scale, penalty);
}

void check_targets(const Tensor& targets, int64_t vocabulary) {
  const int32_t* t = targets.data<int32_t>();
  for (int64_t i = 0; i < targets.size(); ++i)
    if (t[i] < -1 || t[i] >= vocabulary)
      throw DataError("[linear_cross_entropy] target " + std::to_string(t[i]) + " at position " + std::to_string(i) +
                      " is outside the vocabulary of " + std::to_string(vocabulary));
}

/// d_rows and d_weight: of the mean loss, empty when not wanted.
struct Buffers {
  Tensor logits, d_rows, d_weight;
  TargetedRows list;                 ///< empty: every row may have a target
  Tensor gathered, losses, largest;  ///< with a list: hidden states of a block of its rows, nats and largest logits' places of all of them

  bool gradients() const { return d_rows || d_weight; }
};

/// Fills the list; returns how many rows have a target.
int64_t list_targets(const Tensor& targets, const TargetedRows& list) {
  const int32_t* t = targets.data<int32_t>();
  const int64_t most = list.rows.size(), count = std::count_if(t, t + targets.size(), [](int32_t target) { return target >= 0; });
  if (count > most)
    throw DataError("[linear_cross_entropy] " + std::to_string(count) + " rows have a target; expected at most " + std::to_string(most));
  int32_t *rows = list.rows.data<int32_t>(), *wanted = list.targets.data<int32_t>(), *places = list.places.data<int32_t>();
  int32_t next = 0;
  for (int64_t n = 0; n < targets.size(); ++n) {
    places[n] = t[n] < 0 ? TargetedRows::kNone : next;
    if (t[n] >= 0) rows[next] = static_cast<int32_t>(n), wanted[next++] = t[n];
  }
  std::fill(rows + count, rows + most, TargetedRows::kNone);
  std::fill(wanted + count, wanted + most, TargetedRows::kNone);
  return count;
}

template <class T>
void cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& targets, const CrossEntropy& loss, const Buffers& buffers,
                   const CrossEntropyOptions& options) {
  const int64_t vocabulary = weight.dim(0), width = weight.dim(1), all = targets.size(), step = buffers.logits.dim(0);
  check_targets(targets, vocabulary);
  const TargetedRows& list = buffers.list;
  const int64_t rows = list ? list_targets(targets, list) : all;
  const int32_t* wanted = (list ? list.targets : targets).template data<int32_t>();
  const T *h = hidden.data<T>(), *w = weight.data<T>();
  T *logits = buffers.logits.data<T>(), *tokens = loss.tokens.data<T>(), *losses = list ? buffers.losses.data<T>() : tokens;
  int32_t* places = options.largest ? (list ? buffers.largest : options.largest).template data<int32_t>() : nullptr;
  if (buffers.d_weight && rows == 0) std::fill_n(buffers.d_weight.data<T>(), buffers.d_weight.size(), T(0));
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    const T* block = list ? buffers.gathered.data<T>() : h + first * width;
    parallel_ranges(count, kTaskRows, [&](int64_t begin, int64_t end) {
      const int64_t m = end - begin, at = first + begin;
      for (int64_t r = begin; list && r < end; ++r)
        std::copy_n(h + list.rows.data<int32_t>()[first + r] * width, width, buffers.gathered.data<T>() + r * width);
      T* p = logits + begin * vocabulary;
      gemm_serial<T>(false, true, m, vocabulary, width, 1, block + begin * width, width, w, width, false, p, vocabulary);
      softmax(p, wanted + at, losses + at, places ? places + at : nullptr, m, vocabulary, 1.0 / static_cast<double>(all),
              options.max_logit_penalty);
      if (buffers.d_rows)
        gemm_serial<T>(false, false, m, width, vocabulary, 1, p, vocabulary, w, width, false, buffers.d_rows.data<T>() + at * width, width);
    });
    if (buffers.d_weight)
      gemm<T>(true, false, vocabulary, width, count, 1, logits, vocabulary, block, width, first > 0, buffers.d_weight.data<T>(), width);
  }
  if (list) {
    std::fill_n(tokens, all, T(0));
    for (int64_t r = 0; r < rows; ++r) tokens[list.rows.data<int32_t>()[r]] = losses[r];
  }
  if (list && places) {
    int32_t* to = options.largest.data<int32_t>();
    std::fill_n(to, all, -1);
    for (int64_t r = 0; r < rows; ++r) to[list.rows.data<int32_t>()[r]] = places[r];
  }
  double sum = 0;
  for (int64_t i = 0; i < all; ++i) sum += static_cast<double>(tokens[i]);
  *loss.mean.data<T>() = static_cast<T>(sum / static_cast<double>(all));
}

/// to[n] = factor · from[list.places[n]], zeros where n has no place.
template <class T>
void spread_rows(const Tensor& from, const TargetedRows& list, T factor, const Tensor& to) {
  const int64_t width = to.dim(-1);
  const int32_t* places = list.places.data<int32_t>();
  parallel_ranges(list.places.size(), kTaskRows, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      T* row = to.data<T>() + n * width;
      if (places[n] < 0) {
        std::fill_n(row, width, T(0));
        continue;
      }
      const T* own = from.data<T>() + places[n] * width;
      for (int64_t i = 0; i < width; ++i) row[i] = own[i] * factor;
    }
  });
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

/// The same blocks on the GPU: logits of a block of rows by a matrix product, softmax in place, two products for the gradients. Of listed
/// rows all that the list has room for: a captured graph knows no number of targets, and rows without one come out as zeros.
void on_cuda(Tape& tape, const Tensor& hidden, const Tensor& weight, const Tensor& targets, const CrossEntropy& loss,
             const cpu::Buffers& buffers, const CrossEntropyOptions& options) {
  const int device = tape.device().index;
  const Tensor w = tape.compute_copy(weight), flat = hidden.rows_view();
  const TargetedRows& list = buffers.list;
  const int64_t vocabulary = weight.dim(0), width = weight.dim(1), all = flat.dim(0), step = buffers.logits.dim(0);
  const int64_t rows = list ? list.rows.size() : all;
  const Tensor d_rows = buffers.d_rows ? buffers.d_rows.rows_view() : Tensor(), losses = list ? buffers.losses : loss.tokens;
  int32_t* places = options.largest ? static_cast<int32_t*>((list ? buffers.largest : options.largest).raw()) : nullptr;
  if (list) cuda::list_targets(tape.stream(), targets, list);
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    const Tensor h = list ? buffers.gathered.slice(0, count) : flat.slice(first, first + count);
    if (list) cuda::gather_rows(tape.stream(), flat, list, first, h);
    cuda::gemm(device, false, true, count, vocabulary, width, 1, cuda::matrix(h, width), cuda::matrix(w, width), false,
               cuda::matrix(buffers.logits, vocabulary));
    cuda::softmax_cross_entropy(tape.stream(), buffers.logits, static_cast<const int32_t*>((list ? list.targets : targets).raw()) + first,
                                static_cast<float*>(losses.raw()) + first, places ? places + first : nullptr, count, buffers.gradients(),
                                1.0 / static_cast<double>(all), options.max_logit_penalty);
    if (d_rows)
      cuda::gemm(device, false, false, count, width, vocabulary, 1, cuda::matrix(buffers.logits, vocabulary), cuda::matrix(w, width), false,
                 cuda::matrix(d_rows.slice(first, first + count), width));
    if (buffers.d_weight)
      cuda::gemm(device, true, false, vocabulary, width, count, 1, cuda::matrix(buffers.logits, vocabulary), cuda::matrix(h, width),
                 first > 0, cuda::matrix(buffers.d_weight, width));
  }
  if (list) cuda::spread_losses(tape.stream(), losses, list, loss.tokens);
  if (list && places) cuda::spread_largest(tape.stream(), buffers.largest, list, options.largest);
  cuda::mean(tape.stream(), loss.tokens, loss.mean);
}

}  // namespace

CrossEntropy linear_cross_entropy(Tape& tape, const Tensor& hidden, const Tensor& weight, const Tensor& targets,
                                  const CrossEntropyOptions& options) {
  const char* op = "linear_cross_entropy";
  expect(
      weight.rank() == 2 && hidden.rank() >= 1 && hidden.dim(-1) == weight.dim(1) && accumulation_dtype(hidden.dtype()) == weight.dtype(),
      op, "hidden is ", hidden, " ", hidden.dtype(), ", weight is ", weight, " ", weight.dtype(),
      "; expected hidden [..., D], weight [V, D]");
  const int64_t vocabulary = weight.dim(0), width = weight.dim(1), all = hidden.size() / width;
  expect(targets.dtype() == DType::i32 && targets.size() == all && all > 0, op, "targets are ", targets, " ", targets.dtype(),
         ", hidden is ", hidden, "; expected one i32 a row");
  expect(options.max_logit_penalty >= 0, op, "max_logit_penalty is negative; expected 0 or more");
  expect(options.most_targets >= 0, op, "most_targets is negative; expected 0 or more");
  expect(!options.largest || (options.largest.dtype() == DType::i32 && options.largest.size() == all), op, "largest is ", options.largest,
         " ", options.largest.dtype(), ", hidden is ", hidden, "; expected one i32 a row");
  const bool listed = options.most_targets > 0 && options.most_targets < all;
  const int64_t rows = listed ? options.most_targets : all;
  const DType dtype = hidden.dtype(), exact = accumulation_dtype(dtype);
  CrossEntropy loss{tape.empty({1}, exact), tape.empty({all}, exact)};
  // The gradients are made while the logits are there: going over them again in backward would double the work.
  cpu::Buffers buffers;
  if (tape.recording() && hidden.differentiable()) buffers.d_rows = tape.empty(listed ? Shape{rows, width} : hidden.shape(), dtype);
  if (tape.recording() && weight.differentiable()) buffers.d_weight = tape.empty(weight.shape(), exact);
  const int64_t block = block_rows(tape.device(), rows, vocabulary);
  if (listed) {
    buffers.list = {tape.empty({rows}, DType::i32), tape.empty({rows}, DType::i32), tape.empty({all}, DType::i32)};
    buffers.gathered = tape.empty({block, width}, dtype);
    buffers.losses = tape.empty({rows}, exact);
    if (options.largest) buffers.largest = tape.empty({rows}, DType::i32);
  }
  buffers.logits = tape.empty({block, vocabulary}, dtype);
  const double products = 1 + (buffers.d_rows ? 1 : 0) + (buffers.d_weight ? 1 : 0), logits = static_cast<double>(rows * vocabulary);
  const double states = static_cast<double>(rows * width * byte_size(dtype));
  const double bytes = states * (buffers.d_rows ? 2 : 1) +
                       static_cast<double>(weight.bytes() + targets.bytes() + loss.tokens.bytes() +
                                           (options.largest ? options.largest.bytes() : 0) + (buffers.d_weight ? weight.bytes() : 0));
  tape.run(
      op, {products * 2 * logits * static_cast<double>(width) + 5 * logits, bytes},
      [&] { dispatch(dtype, [&](auto zero) { cpu::cross_entropy<decltype(zero)>(hidden, weight, targets, loss, buffers, options); }); },
      [&] { on_cuda(tape, hidden, weight, targets, loss, buffers, options); });
  tape.record(
      {hidden, weight}, {&loss.mean},
      [=, d_rows = buffers.d_rows, d_weight = buffers.d_weight, list = buffers.list, mean = loss.mean](Tape& t) {
        const Tensor d_mean = t.grad(mean);
        if (d_rows) {
          const Tensor d_hidden = list ? t.empty(hidden.shape(), dtype) : d_rows;
          t.run(
              "linear_cross_entropy.backward.hidden",
              {static_cast<double>(d_rows.size()), static_cast<double>(d_rows.bytes() + d_hidden.bytes())},
              [&] {
                dispatch(dtype, [&](auto zero) {
                  using T = decltype(zero);
                  const T factor = *d_mean.data<T>();
                  if (list)
                    cpu::spread_rows<T>(d_rows, list, factor, d_hidden);
                  else if (factor != T(1))
                    cpu::scale_into<T>(d_hidden, false, d_hidden, factor);
                });
              },
              [&] { list ? cuda::spread_rows(t.stream(), d_rows, list, d_mean, d_hidden) : cuda::scale(t.stream(), d_hidden, d_mean); });
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
