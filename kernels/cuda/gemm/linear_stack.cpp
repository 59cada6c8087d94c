#include "kernels/ops/linear/linear_stack_cuda.h"

#ifdef SACCADE_CUDA
#include "kernels/engine/cuda_separate_memory.h"
#include "kernels/engine/plain.h"
#include "kernels/ops/linear/gemm_cuda.h"

namespace saccade::cuda {
namespace {

/// Rows first … first + count − 1 of all matrices together, behind each other in memory.
struct StackedRows {
  const void* data;
  Tensor last;  ///< the matrix that they end with
  int64_t first, count;
  bool add;
  Matrix matrix() const { return {data, last.dtype(), last.dim(1), 0}; }
};

/// Gradients of weights beyond this many elements fill the GPU one matrix at a time, and then run faster (on an H200 two of
/// 2048 x 768 in 532 µs, one of 4096 x 768 in 640).
constexpr int64_t kLargeGradient = int64_t{1} << 21;

/// Appends a matrix to the last rows where it stands behind them, as those of a ParameterMaker::Stack do, and all have at most `most`
/// elements.
void append(std::vector<StackedRows>& runs, const Tensor& matrix, int64_t first, bool add, int64_t most = INT64_MAX) {
  const int64_t count = matrix.dim(0), in = matrix.dim(1);
  if (!runs.empty() && !separate_memory() && !plain_kernels()) {
    StackedRows& rows = runs.back();
    if (rows.first + rows.count == first && rows.add == add && matrix.follows(rows.last) && (rows.count + count) * in <= most) {
      rows.count += count;
      rows.last = matrix;
      return;
    }
  }
  runs.push_back({matrix.raw(), matrix, first, count, add});
}

std::vector<StackedRows> runs_of(const std::vector<Tensor>& weights) {
  std::vector<StackedRows> runs;
  int64_t first = 0;
  for (const Tensor& w : weights) {
    append(runs, w, first, false);
    first += w.dim(0);
  }
  return runs;
}

/// Columns of a packed tensor from `first` on.
Matrix columns(const Tensor& packed, int64_t first) {
  Matrix m = matrix(packed, packed.dim(-1));
  m.data = static_cast<const char*>(m.data) + first * byte_size(packed.dtype());
  return m;
}

}  // namespace

void stack_forward(int device, const Tensor& x, const std::vector<Tensor>& weights, const Tensor& packed) {
  const int64_t in = x.dim(-1), rows = x.size() / in;
  for (const StackedRows& run : runs_of(weights))
    gemm(device, false, true, rows, run.count, in, 1, matrix(x, in), run.matrix(), false, columns(packed, run.first));
}

void stack_backward_weights(int device, const Tensor& x, const Tensor& d_packed, const std::vector<GradTarget>& targets,
                            const std::vector<Tensor>& weights) {
  const int64_t in = x.dim(-1), rows = x.size() / in;
  std::vector<StackedRows> runs;
  int64_t first = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i]) append(runs, targets[i].tensor, first, targets[i].add, kLargeGradient);
    first += weights[i].dim(0);
  }
  for (const StackedRows& run : runs)
    gemm(device, true, false, run.count, in, rows, 1, columns(d_packed, run.first), matrix(x, in), run.add, run.matrix());
}

void stack_backward_input(int device, const Tensor& d_packed, const std::vector<Tensor>& weights, const GradTarget& dx) {
  const int64_t in = dx.tensor.dim(-1), rows = dx.tensor.size() / in;
  bool add = dx.add;
  for (const StackedRows& run : runs_of(weights)) {
    gemm(device, false, false, rows, in, run.count, 1, columns(d_packed, run.first), run.matrix(), add, matrix(dx.tensor, in));
    add = true;
  }
}

}  // namespace saccade::cuda
#endif
