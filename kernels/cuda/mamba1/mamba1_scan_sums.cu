#include "kernels/cuda/mamba1/mamba1_scan.cuh"

namespace saccade::cuda::scan {
namespace {

/// dB and dC: Σ over blocks of channels, in order. A thread owns a token and a column of both.
template <class T>
__global__ void sum_pairs_kernel(const float* parts, int blocks, int64_t rows, int states, int padded, Goal<T> b, Goal<T> c) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x, row = i / (2 * padded);
  const int column = static_cast<int>(i % (2 * padded)), n = column % padded;
  if (row >= rows || n >= states) return;
  float sum = 0;
  for (int block = 0; block < blocks; ++block) sum += parts[(block * rows + row) * 2 * padded + column];
  (column < padded ? b : c).put(row * states + n, sum);
}

/// dA_log = A Σ dA, dbias and dD: Σ over the segments of all sequences, in order. A thread owns a channel and a column of the parts.
__global__ void sum_parts_kernel(const float* parts, int64_t lines, int64_t width, int states, int padded, const float* a_log,
                                 Goal<float> to_a_log, Goal<float> bias, Goal<float> skip) {
  const int row = padded + 2;
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x, d = i / row;
  const int column = static_cast<int>(i % row);
  if (d >= width || (column >= states && column < padded)) return;
  float sum = 0;
  for (int64_t line = 0; line < lines; ++line) sum += parts[(line * width + d) * row + column];
  if (column < states && to_a_log.to)
    to_a_log.put(d * states + column, -expf(a_log[d * states + column]) * sum);
  else if (column >= padded)
    (column == padded ? bias : skip).put(d, sum);
}

template <class T>
void sum_all(Stream stream, const Mamba1Scan& in, const ScanBackward& out) {
  const int64_t rows = in.u.dim(0) * in.u.dim(1), width = in.u.dim(2);
  const Inputs<T> x = inputs_of<T>(in);
  const ScanWidths w = scan_widths(x.states);
  const int padded = w.padded(), blocks = static_cast<int>(scan_blocks(width, w));
  if (out.b || out.c)
    sum_pairs_kernel<<<blocks_for(rows * 2 * padded, kThreads), kThreads, 0, stream>>>(pointer<float>(out.pair_parts), blocks, rows,
                                                                                       x.states, padded, goal<T>(out.b), goal<T>(out.c));
  sum_parts_kernel<<<blocks_for(width * (padded + 2), kThreads), kThreads, 0, stream>>>(
      pointer<float>(out.parts), int64_t{x.batch} * x.segments, width, x.states, padded, x.a_log, goal<float>(out.a_log),
      goal<float>(out.dt_bias), goal<float>(out.skip));
  check_launch();
}

}  // namespace

void sum_parts(Stream stream, const Mamba1Scan& in, const ScanBackward& out) {
  dispatch_cuda(in.u.dtype(), [&](auto zero) { sum_all<decltype(zero)>(stream, in, out); });
}

}  // namespace saccade::cuda::scan
