#include "kernels/ops/linear_split/linear_split.h"

#include <numeric>

#include "kernels/cpu/gemm.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/side_stream.h"
#include "kernels/ops/linear/gemm_cuda.h"

namespace saccade {
namespace {

/// Rows of the weight that make one output.
struct OutputRows {
  int64_t begin, width;
  Tensor of(const Tensor& weight) const { return weight.slice(begin, begin + width); }
};

Cost cost(const Tensor& x, const Tensor& weight, const Tensor& y) {
  return {2.0 * static_cast<double>(x.size()) * static_cast<double>(weight.dim(0)),
          static_cast<double>(x.bytes() + weight.bytes() + y.bytes())};
}

void forward(Tape& tape, const Tensor& x, const Tensor& weight, const OutputRows& piece, const Tensor& y) {
  const int64_t in = weight.dim(1), rows = x.size() / in, out = piece.width;
  const Tensor part = piece.of(weight);
  tape.run(
      "linear", cost(x, part, y),
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          cpu::gemm<T>(false, true, rows, out, in, 1, x.data<T>(), in, part.data<T>(), in, false, y.data<T>(), out);
        });
      },
      [&] {
        const Tensor w = piece.of(tape.compute_copy(weight));
        cuda::gemm(tape.device().index, false, true, rows, out, in, 1, cuda::matrix(x, in), cuda::matrix(w, in), false,
                   cuda::matrix(y, out));
      });
}

/// d_W_i = d_y_iᵀ x
void weight_gradient(Tape& t, const Tensor& x, const OutputRows& piece, const Tensor& dy, const GradTarget& whole) {
  const Tensor dw = piece.of(whole.tensor);
  const int64_t in = dw.dim(1), rows = x.size() / in, out = dw.dim(0);
  run_on_side_stream(
      t, "linear.backward.weight", cost(x, dw, dy), {x, dy}, {whole},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          cpu::gemm<T>(true, false, out, in, rows, 1, dy.data<T>(), out, x.data<T>(), in, whole.add, dw.data<T>(), in);
        });
      },
      [&] {
        cuda::gemm(t.device().index, true, false, out, in, rows, 1, cuda::matrix(dy, out), cuda::matrix(x, in), whole.add,
                   cuda::matrix(dw, in));
      });
}

/// d_x += d_y_i W_i
void input_gradient(Tape& t, const Tensor& x, const Tensor& weight, const OutputRows& piece, const Tensor& dy, const Tensor& dx, bool add) {
  const int64_t in = weight.dim(1), rows = x.size() / in, out = piece.width;
  const Tensor part = piece.of(weight);
  t.run(
      "linear.backward.input", cost(x, part, dy),
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          using T = decltype(zero);
          cpu::gemm<T>(false, false, rows, in, out, 1, dy.data<T>(), out, part.data<T>(), in, add, dx.data<T>(), in);
        });
      },
      [&] {
        const Tensor w = piece.of(t.compute_copy(weight));
        cuda::gemm(t.device().index, false, false, rows, in, out, 1, cuda::matrix(dy, out), cuda::matrix(w, in), add, cuda::matrix(dx, in));
      });
}

}  // namespace

std::vector<Tensor> linear_split(Tape& tape, const Tensor& x, const Tensor& weight, const std::vector<int64_t>& widths) {
  expect(weight.rank() == 2 && x.rank() >= 1 && x.dim(-1) == weight.dim(1) && accumulation_dtype(x.dtype()) == weight.dtype(),
         "linear_split", "x is ", x, " ", x.dtype(), ", weight is ", weight, " ", weight.dtype(),
         "; expected x [..., in], weight [out, in]");
  expect(std::accumulate(widths.begin(), widths.end(), int64_t{0}) == weight.dim(0), "linear_split", "weight is ", weight,
         ", the widths do not add up to its rows");
  std::vector<Tensor> y;
  std::vector<OutputRows> pieces;
  for (int64_t begin = 0; int64_t width : widths) {
    Shape shape;
    for (int i = 0; i + 1 < x.rank(); ++i) shape.push_back(x.dim(i));
    shape.push_back(width);
    y.push_back(tape.empty(shape, x.dtype()));
    pieces.push_back({begin, width});
    forward(tape, x, weight, pieces.back(), y.back());
    begin += width;
  }
  std::vector<Tensor*> outputs;
  for (Tensor& piece : y) outputs.push_back(&piece);
  std::vector<Tensor> recorded = y;
  tape.record({x, weight}, outputs, [x, weight, pieces, recorded](Tape& t) {
    const GradTarget dw = t.grad_target(weight);
    GradTarget dx = t.grad_target(x);
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Tensor dy = t.grad_or_zeros(recorded[i]);
      if (dw) weight_gradient(t, x, pieces[i], dy, dw);
      if (dx) input_gradient(t, x, weight, pieces[i], dy, dx.tensor, dx.add);
      dx.add = true;
    }
  });
  return y;
}

}  // namespace saccade
