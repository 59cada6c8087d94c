#include "kernels/ops/split/split.h"

#include <algorithm>
#include <numeric>

#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/split/split_cuda.h"

namespace saccade {
namespace {

constexpr int64_t kRows = 128;  ///< per task

/// Calls body(row of x, row of the piece) for every row, several at a time.
template <class T, class Body>
void for_rows(const Tensor& x, int64_t column, const Tensor& piece, Body body) {
  const int64_t width = x.dim(-1), n = piece.dim(-1);
  parallel_ranges(x.size() / width, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(x.data<T>() + row * width + column, piece.data<T>() + row * n, n);
  });
}

template <class T>
void take(const Tensor& x, int64_t column, const Tensor& piece) {
  for_rows<T>(x, column, piece, [](const T* from, T* to, int64_t n) { std::copy_n(from, n, to); });
}

/// Columns of dx (+)= the piece's gradient, or 0 when none arrived (`shape_of` then only says how wide it is).
template <class T>
void put(const GradTarget& dx, int64_t column, const Tensor& gradient, const Tensor& shape_of) {
  if (gradient)
    for_rows<T>(dx.tensor, column, gradient, [&](T* to, const T* from, int64_t n) {
      for (int64_t i = 0; i < n; ++i) to[i] = (dx.add ? to[i] : T(0)) + from[i];
    });
  else if (!dx.add)
    for_rows<T>(dx.tensor, column, shape_of, [](T* to, const T*, int64_t n) { std::fill_n(to, n, T(0)); });
}

}  // namespace

std::vector<Tensor> split(Tape& tape, const Tensor& x, const std::vector<int64_t>& widths) {
  expect(std::accumulate(widths.begin(), widths.end(), int64_t{0}) == x.dim(-1), "split", "x is ", x,
         ", the widths do not add up to its last dimension");
  std::vector<Tensor> y;
  for (int64_t width : widths) {
    Shape shape;
    for (int i = 0; i + 1 < x.rank(); ++i) shape.push_back(x.dim(i));
    shape.push_back(width);
    y.push_back(tape.empty(shape, x.dtype()));
  }
  tape.run(
      "split", {0, 2.0 * static_cast<double>(x.bytes())},
      [&] {
        dispatch(x.dtype(), [&](auto zero) {
          int64_t column = 0;
          for (const Tensor& piece : y) take<decltype(zero)>(x, column, piece), column += piece.dim(-1);
        });
      },
      [&] { cuda::split(tape.stream(), x, y); });
  std::vector<Tensor*> outputs;
  for (Tensor& piece : y) outputs.push_back(&piece);
  std::vector<Tensor> recorded = y;
  tape.record(std::vector<Tensor>{x}, outputs, [x, widths, recorded](Tape& t) {
    const GradTarget dx = t.grad_target(x);
    std::vector<Tensor> dy;
    for (const Tensor& piece : recorded) dy.push_back(t.grad(piece));
    t.run(
        "split.backward", {0, 2.0 * static_cast<double>(x.bytes())},
        [&] {
          dispatch(x.dtype(), [&](auto zero) {
            int64_t column = 0;
            for (size_t i = 0; i < dy.size(); ++i) put<decltype(zero)>(dx, column, dy[i], recorded[i]), column += widths[i];
          });
        },
        [&] { cuda::split_backward(t.stream(), dy, widths, dx); });
  });
  return y;
}

}  // namespace saccade
