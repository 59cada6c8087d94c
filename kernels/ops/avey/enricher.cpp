#include "kernels/ops/avey/enricher.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/engine/plain.h"
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
SACCADE_INLINE void bias_activate_impl(T* input, const T* bias, T* value, int64_t rows, int64_t columns, Activation f) {
  with_activation(f, [&](auto a) SACCADE_INLINE_LAMBDA {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t i = r * columns + c;
        const T x = input[i] + bias[c];
        if (input != value) input[i] = x;
        value[i] = activation_value<a()>(x);
      }
  });
}
SACCADE_SIMD void bias_activate(float* input, const float* bias, float* value, int64_t rows, int64_t columns, Activation f) {
  bias_activate_impl(input, bias, value, rows, columns, f);
}
SACCADE_SIMD void bias_activate(double* input, const double* bias, double* value, int64_t rows, int64_t columns, Activation f) {
  bias_activate_impl(input, bias, value, rows, columns, f);
}

/// d *= f'(x), from the input where it was saved, else from the value.
template <class T>
SACCADE_INLINE void times_slope_impl(T* d, const T* saved, int64_t n, Activation f) {
  with_activation(f, [&](auto a) SACCADE_INLINE_LAMBDA {
    for (int64_t i = 0; i < n; ++i)
      d[i] *= slope_from_value(a()) ? activation_slope_from_value<a()>(saved[i]) : activation_slope<a()>(saved[i]);
  });
}
SACCADE_SIMD void times_slope(float* d, const float* saved, int64_t n, Activation f) { times_slope_impl(d, saved, n, f); }
SACCADE_SIMD void times_slope(double* d, const double* saved, int64_t n, Activation f) { times_slope_impl(d, saved, n, f); }

/// One of Z_r, Z_l, Z_h: columns `column` … of Z for rows `row` … of x.
struct EnrichedColumns {
  Tensor value;
  Tensor input;  ///< before the activation, where its slope needs it; else the same as value
  int64_t row = 0, column = 0;
  int64_t rows() const { return value.dim(0); }
  int64_t columns() const { return value.dim(1); }
};

template <class T>
void forward(const std::vector<EnrichedColumns>& parts, int64_t R, int64_t D, const T* x, const T* weight, const T* bias, Activation f) {
  parallel_ranges(R, kBlock, [&](int64_t begin, int64_t end) {
    for (const EnrichedColumns& part : parts) {
      const int64_t first = std::max(begin, part.row), rows = end - first;
      if (rows <= 0) continue;
      const int64_t at = (first - part.row) * part.columns();
      T* input = part.input.data<T>() + at;
      cpu::gemm_serial<T>(false, true, rows, part.columns(), D, 1, x + first * D, D, weight + part.column * D, D, false, input,
                          part.columns());
      bias_activate(input, bias + part.column, part.value.data<T>() + at, rows, part.columns(), f);
    }
  });
}

/// d_value becomes d_input in place; d_x in the same pass.
template <class T>
void backward_x(const std::vector<EnrichedColumns>& parts, const std::vector<Tensor>& d, int64_t R, int64_t D, const T* weight,
                Activation f, T* d_x, bool add) {
  parallel_ranges(R, kBlock, [&](int64_t begin, int64_t end) {
    bool more = add;
    for (size_t p = 0; p < parts.size(); ++p) {
      const EnrichedColumns& part = parts[p];
      const int64_t first = std::max(begin, part.row), rows = end - first;
      if (rows <= 0) continue;
      const int64_t at = (first - part.row) * part.columns();
      T* d_input = d[p].data<T>() + at;
      times_slope(d_input, part.input.data<T>() + at, rows * part.columns(), f);
      if (d_x)
        cpu::gemm_serial<T>(false, false, rows, D, part.columns(), 1, d_input, part.columns(), weight + part.column * D, D, more,
                            d_x + first * D, D);
      more = true;  // part 0 covers all rows
    }
  });
}

/// Weights and biases of a part's columns.
Tensor rows_of(const Tensor& x, const EnrichedColumns& part) { return x.slice(part.column, part.column + part.columns()); }

std::vector<cuda::EnrichedPart> on_cuda(const std::vector<EnrichedColumns>& parts) {
  std::vector<cuda::EnrichedPart> same;
  for (const EnrichedColumns& part : parts)
    same.push_back({part.value, part.input.raw() == part.value.raw() ? Tensor() : part.input, part.row, part.column});
  return same;
}

void cuda_forward(const Tape& tape, const std::vector<EnrichedColumns>& parts, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  Activation f, const Tensor& squares) {
  const Tensor w = tape.compute_copy(weight);
  const int64_t R = x.dim(0), D = x.dim(1);
  const int device = tape.device().index;
  if (cuda::enrich_product(device, f, x, w, bias, on_cuda(parts), squares)) return;
  for (const EnrichedColumns& part : parts) {
    cuda::gemm(device, false, true, part.rows(), part.columns(), D, 1, cuda::matrix(x.slice(part.row, R), D),
               cuda::matrix(rows_of(w, part), D), false, cuda::matrix(part.input, part.columns()));
    cuda::bias_activate(tape.stream(), f, part.input, rows_of(bias, part), part.value);
  }
  if (squares) cuda::row_squares(tape.stream(), parts[0].value, squares);
}

struct Targets {
  GradTarget x, weight, bias;
};

/// `d` are gradients of f's inputs; `d_shifts` their sums over rows, of the first part and of all others, or none.
void cuda_backward(const Tape& tape, const std::vector<EnrichedColumns>& parts, const std::vector<Tensor>& d,
                   const std::vector<Tensor>& d_shifts, const Tensor& x, const Tensor& weight, const Targets& to, const Tensor& sums,
                   const Tensor& products) {
  const Tensor w = tape.compute_copy(weight);
  const int64_t R = x.dim(0), D = x.dim(1);
  const int device = tape.device().index;
  const bool biases = to.bias && d_shifts.empty();  // to be summed here
  const bool all = to.x && cuda::enrich_product_backward(device, on_cuda(parts), d, w, to.x.tensor, to.x.add);
  std::vector<cuda::TallProduct> tall;
  for (size_t p = 0; p < parts.size() && to.weight; ++p)
    tall.push_back({d[p], x.slice(parts[p].row, R), cuda::matrix(rows_of(to.weight.tensor, parts[p]), D), to.weight.add,
                    biases ? GradTarget{rows_of(to.bias.tensor, parts[p]), to.bias.add} : GradTarget{}});
  const int64_t rest = parts.size() > 1 ? parts[1].column : 0;
  std::vector<cuda::TallSum> shifts;
  if (to.bias && !biases)
    shifts = {{d_shifts[0], {to.bias.tensor.slice(0, rest), to.bias.add}},
              {d_shifts[1], {to.bias.tensor.slice(rest, weight.dim(0)), to.bias.add}}};
  const bool together = to.weight && cuda::tall_products(device, tall, shifts, products);
  for (size_t p = 0; p < parts.size(); ++p) {
    const EnrichedColumns& part = parts[p];
    const int64_t n = part.columns();
    if (to.x && !all)
      cuda::gemm(device, false, false, part.rows(), D, n, 1, cuda::matrix(d[p], n), cuda::matrix(rows_of(w, part), D), to.x.add || p > 0,
                 cuda::matrix(to.x.tensor.slice(part.row, R), D));
    if (to.weight && !together)
      cuda::gemm(device, true, false, n, D, part.rows(), 1, cuda::matrix(d[p], n), cuda::matrix(x.slice(part.row, R), D), to.weight.add,
                 cuda::matrix(rows_of(to.weight.tensor, part), D));
    if (biases && !together) cuda::sum_rows(tape.stream(), d[p], rows_of(to.bias.tensor, part), to.bias.add, sums);
  }
  for (const cuda::TallSum& sum : shifts)
    if (!together) cuda::sum_parts(tape.stream(), sum.parts, sum.to.tensor, sum.to.add);
}

}  // namespace

Enriched enrich(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f, int64_t tail, int64_t Q) {
  return enrich_stage(tape, x, weight, bias, f, tail, Q, false);
}

EnrichedStage enrich_stage(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f, int64_t tail, int64_t Q,
                           bool slope_by_consumers) {
  expect(x.rank() == 2 && weight.rank() == 2 && x.dim(1) == weight.dim(1) && bias.size() == weight.dim(0), "avey.enrich", "x is ", x,
         ", weight is ", weight, ", bias is ", bias);
  expect(tail >= 2 && tail % 2 == 0 && tail <= weight.dim(0) && Q <= x.dim(0), "avey.enrich", "tail ", tail, " of ", weight.dim(0),
         " features, gated rows ", Q, " of ", x.dim(0));
  const int64_t R = x.dim(0), D = x.dim(1), m = weight.dim(0);
  std::vector<EnrichedColumns> parts;
  const auto add_part = [&](int64_t row, int64_t column, int64_t columns) {
    const Shape shape{R - row, columns};
    const Tensor value = tape.empty(shape, x.dtype());
    const bool keep_input = tape.recording() && !slope_from_value(f);
    parts.push_back({value, keep_input ? tape.empty(shape, x.dtype()) : value, row, column});
  };
  add_part(0, 0, tail / 2);
  add_part(R - Q, tail / 2, tail / 2);
  if (m > tail) add_part(R - Q, tail, m - tail);

  const bool leave_slope = slope_by_consumers && !plain_kernels() && tape.device().targets_cuda() && slope_from_value(f);
  const bool with_squares = leave_slope && x.dtype() == DType::bf16 && tail / 2 % cuda::kSquaresTile == 0;
  const Tensor squares = with_squares ? tape.empty({tail / 2 / cuda::kSquaresTile, R}, DType::f32) : Tensor();
  double products = 0, bytes = static_cast<double>(x.bytes() + weight.bytes());
  for (const EnrichedColumns& part : parts) {
    products += static_cast<double>(part.value.size() * D);
    bytes += static_cast<double>(part.value.bytes());
  }
  tape.run(
      "avey.enrich", {2 * products, bytes},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          forward<T>(parts, R, D, x.data<T>(), weight.data<T>(), bias.data<T>(), f);
        });
      },
      [&] { cuda_forward(tape, parts, x, weight, bias, f, squares); });
  EnrichedStage z{
      {parts[0].value, parts[1].value, m > tail ? parts[2].value : Tensor()}, leave_slope ? f : Activation::none, {}, {}, squares};
  std::vector<Tensor*> outputs{&z.r, &z.l};
  if (z.h) outputs.push_back(&z.h);
  if (leave_slope && bias.differentiable() && !cuda::tall_scratch(weight.size())) {
    z.shift_r = tape.empty({tail / 2}, DType::f32), z.shift = tape.empty({m - tail / 2}, DType::f32);
    outputs.insert(outputs.end(), {&z.shift_r, &z.shift});
  }
  tape.record(std::vector<Tensor>{x, weight, bias}, outputs, [=, shift_r = z.shift_r, shift = z.shift](Tape& t) {
    std::vector<Tensor> d;
    std::vector<WeightGradient> weight_gradients;
    for (const EnrichedColumns& part : parts) d.push_back(t.grad_or_zeros(part.value));
    const GradTarget dx = t.grad_target(x), dw = t.grad_target(weight), db = t.grad_target(bias);
    const std::vector<Tensor> d_shifts = shift ? std::vector{t.grad(shift_r), t.grad(shift)} : std::vector<Tensor>{};
    const bool on_cuda = t.device().targets_cuda();
    if (!on_cuda)
      for (const EnrichedColumns& part : parts) weight_gradients.emplace_back(t, part.rows(), part.columns(), D, x.dtype());
    const Tensor sums = on_cuda && db ? t.empty({cuda::kSumParts * std::max(tail / 2, m - tail)}, DType::f32) : Tensor();
    const int64_t products_size = on_cuda && dw ? cuda::tall_scratch(weight.size()) : 0;
    const Tensor of_products = products_size ? t.empty({products_size}, DType::f32) : Tensor();
    t.run(
        "avey.enrich.backward", {4 * products, 2 * bytes},
        [&] {
          dispatch(x.dtype(), [&](auto zero) {
            using T = decltype(zero);
            backward_x<T>(parts, d, R, D, weight.data<T>(), f, dx ? dx.tensor.data<T>() : nullptr, dx.add);
            for (size_t p = 0; p < parts.size(); ++p) {
              const EnrichedColumns& part = parts[p];
              if (dw) weight_gradients[p](d[p].data<T>(), x.data<T>() + part.row * D, dw.tensor.data<T>() + part.column * D, D, dw.add);
              if (db) column_sums(d[p].data<T>(), part.rows(), part.columns(), db.tensor.data<T>() + part.column, db.add);
            }
          });
        },
        [&] {
          for (size_t p = 0; p < parts.size() && !leave_slope; ++p)
            cuda::times_slope(t.stream(), f, d[p], parts[p].input, slope_from_value(f));
          cuda_backward(t, parts, d, d_shifts, x, weight, {dx, dw, db}, sums, of_products);
        });
  });
  return z;
}

}  // namespace saccade::avey
