#include "kernels/ops/avey/contexts.h"

#include "kernels/cpu/simd.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/avey/contexts_cuda.h"

namespace saccade::avey {
namespace {

/// y = a x, or y += a x.
template <class T>
SACCADE_INLINE void scaled_impl(T* y, const T* x, T a, int64_t n, bool add) {
  if (add)
    for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
  else
    for (int64_t i = 0; i < n; ++i) y[i] = a * x[i];
}
SACCADE_SIMD void scaled(float* y, const float* x, float a, int64_t n, bool add) { scaled_impl(y, x, a, n, add); }
SACCADE_SIMD void scaled(double* y, const double* x, double a, int64_t n, bool add) { scaled_impl(y, x, a, n, add); }

template <class T>
T dot(const T* x, const T* y, int64_t n) {
  double sum = 0;  // S·D terms
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return static_cast<T>(sum);
}

template <class T>
void gather(const ContextLayout& l, int64_t D, const T* x, const int32_t* chosen, const T* weights, T* h) {
  const int64_t N = l.splits(), S = l.split, k = l.top_k;
  std::fill(h, h + l.pad_rows() * D, T(0));
  parallel_for(l.batch * N, [&](int64_t task) {
    const int64_t b = task / N, i = task % N;
    const T* sequence = x + b * l.tokens * D;
    for (int64_t s = 0; s < l.chosen_count(i); ++s)
      scaled(h + (l.chosen_row(b, i) + s * S) * D, sequence + chosen[task * k + s] * S * D, weights[task * k + s], S * D, false);
    std::copy_n(sequence + i * S * D, l.own_count(i) * D, h + l.own_row(b, i) * D);
  });
}

/// d_x of split s: its own rows, then w_p times the rows of every context that chose it, in ascending order.
template <class T>
void gather_backward_x(const ContextLayout& l, int64_t D, const int32_t* chosen, const T* weights, const T* dh, T* dx, bool add) {
  const int64_t N = l.splits(), S = l.split, k = l.top_k;
  parallel_for(l.batch * N, [&](int64_t task) {
    const int64_t b = task / N, s = task % N;
    T* to = dx + (b * l.tokens + s * S) * D;
    scaled(to, dh + l.own_row(b, s) * D, T(1), l.own_count(s) * D, add);
    for (int64_t i = s + 1; i < N; ++i)
      for (int64_t slot = 0; slot < l.chosen_count(i); ++slot)
        if (const int64_t at = (b * N + i) * k + slot; chosen[at] == s)
          scaled(to, dh + (l.chosen_row(b, i) + slot * S) * D, weights[at], S * D, true);
  });
}

template <class T>
void gather_backward_weights(const ContextLayout& l, int64_t D, const T* x, const int32_t* chosen, const T* dh, T* d_weights, bool add) {
  const int64_t N = l.splits(), S = l.split, k = l.top_k;
  parallel_for(l.batch * N, [&](int64_t task) {
    const int64_t b = task / N, i = task % N;
    for (int64_t s = 0; s < k; ++s) {
      T& d = d_weights[task * k + s];
      if (!add) d = 0;
      if (s >= l.chosen_count(i)) continue;
      d += dot(dh + (l.chosen_row(b, i) + s * S) * D, x + (b * l.tokens + chosen[task * k + s] * S) * D, S * D);
    }
  });
}

/// Calls f(context, position, row, count) for every run of rows of every context.
template <class F>
void each_run(const ContextLayout& l, int64_t context, F&& f) {
  const ContextRows rows = context_rows(l, context / l.splits(), context % l.splits());
  int64_t position = 0;
  for (const auto& run : rows.runs) {
    if (run.count) f(position, run.row, run.count);
    position += run.count;
  }
}

template <class T>
void rows_to_rectangles(const ContextLayout& l, int64_t W, const T* rows, T* rectangles) {
  const int64_t C = l.context_width();
  parallel_for(l.batch * l.splits(), [&](int64_t context) {
    T* to = rectangles + context * C * W;
    int64_t end = 0;
    each_run(l, context, [&](int64_t position, int64_t row, int64_t count) {
      std::copy_n(rows + row * W, count * W, to + position * W);
      end = position + count;
    });
    std::fill(to + end * W, to + C * W, T(0));
  });
}

template <class T>
void rows_to_rectangles_backward(const ContextLayout& l, int64_t W, const T* d_rectangles, T* d_rows, bool add) {
  const int64_t C = l.context_width(), contexts = l.batch * l.splits();
  parallel_for(contexts, [&](int64_t context) {
    each_run(l, context, [&](int64_t position, int64_t row, int64_t count) {
      if (row >= l.pad_rows()) scaled(d_rows + row * W, d_rectangles + (context * C + position) * W, T(1), count * W, add);
    });
  });
  if (!add) std::fill(d_rows, d_rows + l.pad_rows() * W, T(0));
  parallel_for(l.pad_rows(), [&](int64_t row) {  // every context adds to the padding they share, in order
    for (int64_t context = 0; context < contexts; ++context)
      if (row < l.padding_before(context % l.splits())) scaled(d_rows + row * W, d_rectangles + (context * C + row) * W, T(1), W, true);
  });
}

/// Calls f(row, place in the rectangles, count) for all rows that come back; the padding from context 0.
template <class F>
void each_return(const ContextLayout& l, bool own_only, int64_t context, F&& f) {
  const int64_t C = l.context_width(), first = own_only ? l.first_own_row() : (context == 0 ? 0 : l.pad_rows());
  each_run(l, context, [&](int64_t position, int64_t row, int64_t count) {
    if (row >= first) f(row - (own_only ? l.first_own_row() : 0), context * C + position, count);
  });
}

template <class T>
void rectangles_to_rows(const ContextLayout& l, int64_t W, bool own_only, const T* rectangles, T* rows) {
  parallel_for(l.batch * l.splits(), [&](int64_t context) {
    each_return(l, own_only, context,
                [&](int64_t row, int64_t place, int64_t count) { std::copy_n(rectangles + place * W, count * W, rows + row * W); });
  });
}

template <class T>
void rectangles_to_rows_backward(const ContextLayout& l, int64_t W, bool own_only, const T* d_rows, T* d_rectangles, bool add) {
  const int64_t C = l.context_width();
  parallel_for(l.batch * l.splits(), [&](int64_t context) {
    if (!add) std::fill(d_rectangles + context * C * W, d_rectangles + (context + 1) * C * W, T(0));
    each_return(l, own_only, context, [&](int64_t row, int64_t place, int64_t count) {
      scaled(d_rectangles + place * W, d_rows + row * W, T(1), count * W, true);
    });
  });
}

}  // namespace

Tensor contexts(Tape& tape, const Tensor& x, const Ranked& ranked, const ContextLayout& l) {
  expect(x.rank() == 3 && x.dim(0) == l.batch && x.dim(1) == l.tokens, "avey.contexts", "x is ", x, ", layout of ", l.batch,
         " sequences of ", l.tokens, " tokens");
  expect(l.top_k == 0 || ranked.weights.shape() == Shape{l.batch, l.splits(), l.top_k}, "avey.contexts", "weights are ", ranked.weights,
         ", layout has ", l.splits(), " splits, top_k ", l.top_k);
  const int64_t D = x.dim(2);
  Tensor h = tape.empty({l.rows(), D}, x.dtype());
  const Cost cost{static_cast<double>(h.size()), 2.0 * static_cast<double>(h.bytes())};
  tape.run(
      "avey.contexts", cost,
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          gather<T>(l, D, x.data<T>(), l.top_k ? ranked.chosen.data<int32_t>() : nullptr, l.top_k ? ranked.weights.data<T>() : nullptr,
                    h.data<T>());
        });
      },
      [&] { cuda::contexts(tape.stream(), l, x, ranked.chosen, ranked.weights, h); });
  tape.record({x, ranked.weights}, {&h}, [=](Tape& t) {
    const Tensor dh = t.grad(h);
    const GradTarget dx = t.grad_target(x), dw = t.grad_target(ranked.weights);
    t.run(
        "avey.contexts.backward", {2 * cost.flops, 1.5 * cost.bytes},
        [&] {
          dispatch(x.dtype(), [&](auto zero) {
            using T = decltype(zero);
            const int32_t* chosen = l.top_k ? ranked.chosen.data<int32_t>() : nullptr;
            const T* weights = l.top_k ? ranked.weights.data<T>() : nullptr;
            if (dx) gather_backward_x<T>(l, D, chosen, weights, dh.data<T>(), dx.tensor.data<T>(), dx.add);
            if (dw) gather_backward_weights<T>(l, D, x.data<T>(), chosen, dh.data<T>(), dw.tensor.data<T>(), dw.add);
          });
        },
        [&] {
          if (dx) cuda::contexts_backward_x(t.stream(), l, ranked.chosen, ranked.weights, dh, dx.tensor, dx.add);
          if (dw) cuda::contexts_backward_weights(t.stream(), l, x, ranked.chosen, dh, dw.tensor, dw.add);
        });
  });
  return h;
}

Tensor to_rectangles(Tape& tape, const Tensor& rows, const ContextLayout& l) {
  expect(rows.rank() == 2 && rows.dim(0) == l.rows(), "avey.to_rectangles", "rows are ", rows, ", layout has ", l.rows());
  const int64_t W = rows.dim(1);
  Tensor y = tape.empty({l.batch * l.splits(), l.context_width(), W}, rows.dtype());
  const Cost cost{0, 2.0 * static_cast<double>(y.bytes())};
  const cuda::Rectangles all{.layout = l, .contexts = y.dim(0), .positions = y.dim(1), .shifted = true};
  tape.run(
      "avey.to_rectangles", cost,
      [&] {
        dispatch(rows.dtype(), [&](auto zero) {
          using T = decltype(zero);
          rows_to_rectangles<T>(l, W, rows.data<T>(), y.data<T>());
        });
      },
      [&] { cuda::rows_to_rectangles(tape.stream(), all, rows, y, false); });
  tape.record({rows}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget dx = t.grad_target(rows);
    if (!dx) return;
    t.run(
        "avey.to_rectangles.backward", cost,
        [&] {
          dispatch(rows.dtype(), [&](auto zero) {
            using T = decltype(zero);
            rows_to_rectangles_backward<T>(l, W, dy.data<T>(), dx.tensor.data<T>(), dx.add);
          });
        },
        [&] {
          cuda::rectangles_to_rows(t.stream(), all, dy, dx.tensor, dx.add);
          cuda::padding_from_rectangles(t.stream(), all, dy, dx.tensor, dx.add);
        });
  });
  return y;
}

Tensor from_rectangles(Tape& tape, const Tensor& rectangles, const ContextLayout& l, bool own_only) {
  expect(rectangles.rank() == 3 && rectangles.dim(0) == l.batch * l.splits() && rectangles.dim(1) == l.context_width(),
         "avey.from_rectangles", "rectangles are ", rectangles, ", layout has ", l.batch * l.splits(), " contexts of ", l.context_width());
  const int64_t W = rectangles.dim(2);
  Tensor y = tape.empty({own_only ? l.own_rows() : l.rows(), W}, rectangles.dtype());
  const Cost cost{0, 2.0 * static_cast<double>(y.bytes())};
  const cuda::Rectangles back{
      .layout = l, .contexts = rectangles.dim(0), .positions = rectangles.dim(1), .shifted = true, .returning = true, .own_only = own_only};
  tape.run(
      "avey.from_rectangles", cost,
      [&] {
        dispatch(y.dtype(), [&](auto zero) {
          using T = decltype(zero);
          rectangles_to_rows<T>(l, W, own_only, rectangles.data<T>(), y.data<T>());
        });
      },
      [&] { cuda::rectangles_to_rows(tape.stream(), back, rectangles, y, false); });
  tape.record({rectangles}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget dx = t.grad_target(rectangles);
    if (!dx) return;
    t.run(
        "avey.from_rectangles.backward", {0, static_cast<double>(dy.bytes() + rectangles.bytes())},
        [&] {
          dispatch(dy.dtype(), [&](auto zero) {
            using T = decltype(zero);
            rectangles_to_rows_backward<T>(l, W, own_only, dy.data<T>(), dx.tensor.data<T>(), dx.add);
          });
        },
        [&] { cuda::rows_to_rectangles(t.stream(), back, dy, dx.tensor, dx.add); });
  });
  return y;
}

}  // namespace saccade::avey
