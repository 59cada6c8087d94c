#include "kernels/cuda/mamba1_scan.cuh"

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

/// dA_log = A Σ dA, dbias and dD: Σ over sequences, in order. A thread owns a channel and a column of the parts.
__global__ void sum_parts_kernel(const float* parts, int64_t batch, int64_t width, int states, int padded, const float* a_log,
                                 Goal<float> to_a_log, Goal<float> bias, Goal<float> skip) {
  const int row = padded + 2;
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x, d = i / row;
  const int column = static_cast<int>(i % row);
  if (d >= width || (column >= states && column < padded)) return;
  float sum = 0;
  for (int64_t b = 0; b < batch; ++b) sum += parts[(b * width + d) * row + column];
  if (column < states && to_a_log.to)
    to_a_log.put(d * states + column, -expf(a_log[d * states + column]) * sum);
  else if (column >= padded)
    (column == padded ? bias : skip).put(d, sum);
}

/// The gradients of s, and of b and α in parts [B, 2]: g = −e^α softplus(s + b). A block owns a sequence.
template <class T>
__global__ void __launch_bounds__(kThreads)
    shared_gradients_kernel(Inputs<T> x, const float* shared_parts, int blocks, Goal<T> d_shared, float* parts) {
  const int64_t first = int64_t{blockIdx.x} * x.length, rows = int64_t{gridDim.x} * x.length;
  float bias = 0, alpha = 0;
  for (int64_t row = first + threadIdx.x; row < first + x.length; row += kThreads) {
    float dg = 0;
    for (int block = 0; block < blocks; ++block) dg += shared_parts[block * rows + row];
    const float slope = -expf(x.a_log[0]) * sigmoid(to_float(x.shared[row]) + x.shared_bias[0]) * dg;
    d_shared.put(row, slope);
    bias += slope;
    alpha += x.shared_decay(row) * dg;
  }
  bias = block_sum<kThreads>(bias), alpha = block_sum<kThreads>(alpha);
  if (threadIdx.x == 0) parts[blockIdx.x * 2] = bias, parts[blockIdx.x * 2 + 1] = alpha;
}
__global__ void sum_shared_kernel(const float* parts, int64_t batch, Goal<float> bias, Goal<float> alpha) {
  float sum = 0;
  for (int64_t b = 0; b < batch; ++b) sum += parts[b * 2 + threadIdx.x];
  (threadIdx.x == 0 ? bias : alpha).put(0, sum);
}

template <class T>
void sum_all(Stream stream, const Mamba1Scan& in, const ScanBackward& out) {
  const int64_t batch = in.u.dim(0), rows = batch * in.u.dim(1), width = in.u.dim(2);
  const Inputs<T> x = inputs_of<T>(in);
  const ScanWidths w = scan_widths(x.states);
  const int padded = w.padded(), blocks = static_cast<int>(scan_blocks(width, w));
  if (out.b || out.c)
    sum_pairs_kernel<<<blocks_for(rows * 2 * padded, kThreads), kThreads, 0, stream>>>(pointer<float>(out.pair_parts), blocks, rows,
                                                                                       x.states, padded, goal<T>(out.b), goal<T>(out.c));
  sum_parts_kernel<<<blocks_for(width * (padded + 2), kThreads), kThreads, 0, stream>>>(
      pointer<float>(out.parts), batch, width, x.states, padded, x.a_log, x.shared ? Goal<float>{} : goal<float>(out.a_log),
      goal<float>(out.dt_bias), goal<float>(out.skip));
  check_launch();
  if (!x.shared) return;
  shared_gradients_kernel<T><<<static_cast<unsigned>(batch), kThreads, 0, stream>>>(
      x, pointer<float>(out.shared_parts), blocks, goal<T>(out.shared_dt), pointer<float>(out.shared_sums));
  sum_shared_kernel<<<1, 2, 0, stream>>>(pointer<float>(out.shared_sums), batch, goal<float>(out.shared_bias), goal<float>(out.a_log));
  check_launch();
}

}  // namespace

void sum_parts(Stream stream, const Mamba1Scan& in, const ScanBackward& out) {
  dispatch_cuda(in.u.dtype(), [&](auto zero) { sum_all<decltype(zero)>(stream, in, out); });
}

}  // namespace saccade::cuda::scan
