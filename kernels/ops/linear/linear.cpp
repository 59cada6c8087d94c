#include "kernels/ops/linear/linear.h"

#include <algorithm>

#include "kernels/cpu/gemm.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/engine/side_stream.h"
#include "kernels/ops/elementwise/elementwise_cuda.h"
#include "kernels/ops/linear/few_rows_cuda.h"
#include "kernels/ops/linear/gemm_cuda.h"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade {
namespace cpu {
namespace {

constexpr int64_t kBiasRows = 256;

/// Every row of y = b + r; either may be empty.
template <class T>
void fill_rows(const Tensor& bias, const Tensor& residual, const Tensor& y) {
  const int64_t out = y.dim(-1);
  const T *b = bias ? bias.data<T>() : nullptr, *add = residual ? residual.data<T>() : nullptr;
  T* rows = y.data<T>();
  parallel_ranges(y.size() / out, kBiasRows, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (add)
        std::copy(add + r * out, add + (r + 1) * out, rows + r * out);
      else
        std::copy(b, b + out, rows + r * out);
      for (int64_t j = 0; add && b && j < out; ++j) rows[r * out + j] += b[j];
    }
  });
}

/// d_b = Σ_rows d_y
template <class T>
void sum_rows(const Tensor& dy, const GradTarget& db) {
  const int64_t out = db.tensor.size(), rows = dy.size() / out;
  const T* d = dy.data<T>();
  T* sum = db.tensor.data<T>();
  parallel_ranges(out, 64, [&](int64_t begin, int64_t end) {
    if (!db.add) std::fill(sum + begin, sum + end, T(0));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = begin; j < end; ++j) sum[j] += d[r * out + j];
  });
}

}  // namespace
}  // namespace cpu

namespace {

double matmul_bytes(const Tensor& a, const Tensor& b, const Tensor& c) { return static_cast<double>(a.bytes() + b.bytes() + c.bytes()); }

/// Product of [rows, in], [in, out]: what forward, d_x and d_W each cost.
Cost matmul_cost(const Tensor& x, const Tensor& weight, const Tensor& y) {
  return {2.0 * static_cast<double>(x.size()) * static_cast<double>(weight.dim(0)), matmul_bytes(x, weight, y)};
}

void check(const Tensor& x, const Tensor& weight, const char* op) {
  expect(weight.rank() == 2 && x.rank() >= 1 && x.dim(-1) == weight.dim(1) && accumulation_dtype(x.dtype()) == weight.dtype(), op, "x is ",
         x, " ", x.dtype(), ", weight is ", weight, " ", weight.dtype(), "; expected x [..., in], weight [out, in]");
}

Tensor forward(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& residual) {
  const int64_t in = weight.dim(1), out = weight.dim(0), rows = x.size() / in;
  Shape shape;
  for (int i = 0; i + 1 < x.rank(); ++i) shape.push_back(x.dim(i));
  shape.push_back(out);
  Tensor y = tape.empty(shape, x.dtype());
  tape.run(
      "linear", matmul_cost(x, weight, y),
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          if (bias || residual) cpu::fill_rows<T>(bias, residual, y);
          cpu::gemm<T>(false, true, rows, out, in, 1, x.data<T>(), in, weight.data<T>(), in, bias || residual, y.data<T>(), out);
        });
      },
      [&] {
        const Tensor copy = tape.compute_copy(weight);
        const cuda::Matrix w = cuda::matrix(copy, in);
        const int device = tape.device().index;
        if (few_rows(tape, x) && cuda::few_rows_linear(device, x, copy, bias, residual, y)) return;
        if (bias) cuda::fill_rows(tape.stream(), bias, residual, y);
        if (residual && !bias)
          cuda::gemm_onto(device, false, true, rows, out, in, cuda::matrix(x, in), w, cuda::matrix(residual, out), cuda::matrix(y, out));
        else
          cuda::gemm(device, false, true, rows, out, in, 1, cuda::matrix(x, in), w, static_cast<bool>(bias), cuda::matrix(y, out));
      });
  return y;
}

/// d_x = d_y W,  d_W = d_yᵀ x
void backward(Tape& t, const Tensor& x, const Tensor& weight, const Tensor& dy) {
  const int64_t in = weight.dim(1), out = weight.dim(0), rows = x.size() / in;
  if (const GradTarget dw = t.grad_target(weight)) {
    run_on_side_stream(
        t, "linear.backward.weight", matmul_cost(x, weight, dy), {x, dy}, {dw},
        [&] {
          dispatch(x.dtype(), [&](auto zero) {
            using T = decltype(zero);
            cpu::gemm<T>(true, false, out, in, rows, 1, dy.data<T>(), out, x.data<T>(), in, dw.add, dw.tensor.data<T>(), in);
          });
        },
        [&] {
          cuda::gemm(t.device().index, true, false, out, in, rows, 1, cuda::matrix(dy, out), cuda::matrix(x, in), dw.add,
                     cuda::matrix(dw.tensor, in));
        });
  }
  if (const GradTarget dx = t.grad_target(x)) {
    t.run(
        "linear.backward.input", matmul_cost(x, weight, dy),
        [&] {
          dispatch(x.dtype(), [&](auto zero) {
            using T = decltype(zero);
            cpu::gemm<T>(false, false, rows, in, out, 1, dy.data<T>(), out, weight.data<T>(), in, dx.add, dx.tensor.data<T>(), in);
          });
        },
        [&] {
          const Tensor w = t.compute_copy(weight);
          cuda::gemm(t.device().index, false, false, rows, in, out, 1, cuda::matrix(dy, out), cuda::matrix(w, in), dx.add,
                     cuda::matrix(dx.tensor, in));
        });
  }
}

}  // namespace

Tensor linear(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& residual) {
  check(x, weight, "linear");
  expect(!bias || (bias.size() == weight.dim(0) && bias.dtype() == weight.dtype()), "linear", "bias is ", bias, ", weight is ", weight);
  expect(!residual || (residual.dim(-1) == weight.dim(0) && residual.size() / weight.dim(0) == x.size() / x.dim(-1) &&
                       residual.dtype() == x.dtype()),
         "linear", "residual is ", residual, ", x is ", x, ", weight is ", weight);
  Tensor y = forward(tape, x, weight, bias, residual);
  tape.record({x, weight, bias, residual}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    t.add_grad(residual, dy);
    backward(t, x, weight, dy);
    if (const GradTarget db = t.grad_target(bias)) {
      const Tensor scratch = t.device().targets_cuda() ? t.empty({kColumnParts, bias.size()}, DType::f32) : Tensor();
      t.run(
          "linear.backward.bias", {static_cast<double>(dy.size()), static_cast<double>(dy.bytes() + bias.bytes())},
          [&] { dispatch(dy.dtype(), [&](auto zero) { cpu::sum_rows<decltype(zero)>(dy, db); }); },
          [&] { cuda::column_sums(t.stream(), dy, bias.size(), db.tensor, db.add, scratch); });
    }
  });
  return y;
}

std::vector<Tensor> linears(Tape& tape, const Tensor& x, const std::vector<Tensor>& weights) {
  std::vector<Tensor> inputs{x}, y;
  for (const Tensor& weight : weights) {
    check(x, weight, "linears");
    inputs.push_back(weight);
    y.push_back(forward(tape, x, weight, {}, {}));
  }
  std::vector<Tensor*> outputs;
  for (Tensor& tensor : y) outputs.push_back(&tensor);
  std::vector<Tensor> recorded = y;
  tape.record(inputs, outputs, [x, weights, recorded](Tape& t) {
    for (size_t i = 0; i < weights.size(); ++i)
      if (const Tensor dy = t.grad(recorded[i])) backward(t, x, weights[i], dy);
  });
  return y;
}

}  // namespace saccade
