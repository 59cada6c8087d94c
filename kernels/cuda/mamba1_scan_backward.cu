#include "kernels/cuda/gradient_target.cuh"
#include "kernels/cuda/mamba1_scan.cuh"

namespace saccade::cuda {
namespace scan {
namespace {

template <class T>
struct Gradients {
  const T* dy;
  const float *d_end, *starts;
  Target<T> u, dt, z;
  float *d_start, *pair_parts, *parts;
};

template <class W>
struct TileRows {
  Rows<W> step, input, dy;       ///< Δ, Δ u and dỹ
  Rows<W> sum, d_input, d_step;  ///< Σ_n C h, Σ_n E B and Σ_n A κ log₂ e
};
template <class W>
struct PairSums {
  float of_warp[kThreads / 32][W::kTile][2 * W::kPadded];  ///< Σ over its channels of E Δu, then of dỹ h
};

/// h of every token of the tile, and Σ_n C h.
template <class W>
__device__ __forceinline__ void recompute(TileRows<W>& rows, const Pairs<W>& pairs, const float (&a)[W::kStates],
                                          const float (&start)[W::kStates], float (&h)[W::kTile][W::kStates]) {
  const int channel = W::channel();
#pragma unroll
  for (int t0 = 0; t0 < W::kTile; t0 += W::kTogether) {
    float reads[W::kTogether] = {};
#pragma unroll
    for (int i = 0; i < W::kTogether; ++i) {
      const int t = t0 + i;
      float b[W::kStates], c[W::kStates];
      load_row(pairs.b[t] + W::first_state(), b);
      load_row(pairs.c[t] + W::first_state(), c);
      const float s = rows.step[t][channel], su = rows.input[t][channel];
#pragma unroll
      for (int n = 0; n < W::kStates; ++n) {
        h[t][n] = exp2_approximate(s * a[n]) * (t > 0 ? h[t > 0 ? t - 1 : 0][n] : start[n]) + su * b[n];
        reads[i] += c[n] * h[t][n];
      }
    }
    lane_sums<W::kTogether, 16, W::kSpan>(reads);
    rows.sum[t0 + W::summed_token()][channel] = reads[0];
  }
}

/// Sums of E Δu and dỹ h over the channels of the warp.
template <class W>
__device__ __forceinline__ void sum_pairs(float (&pair)[2 * W::kStates], float (&row)[2 * W::kPadded]) {
  constexpr int kValues = 2 * W::kStates, kEach = kValues < W::kSpan ? 1 : kValues / W::kSpan,
                kSame = kValues < W::kSpan ? W::kSpan / kValues : 1;
  lane_sums<kValues, W::kSpan / 2, 1>(pair);
  const int first = static_cast<int>(threadIdx.x) % W::kSpan / kSame * kEach;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int value = first + j;
    row[value / W::kStates * W::kPadded + W::first_state() + value % W::kStates] = pair[j];
  }
}

/// From the last token of the tile to the first, E the gradient of h_t:
///   E += C dỹ,  dC = Σ_d dỹ h,  dB = Σ_d E Δu,  E ← e^{ΔA} E,  κ = E h_{t−1},  dA += Δ κ
template <class W>
__device__ __forceinline__ void reverse(TileRows<W>& rows, const Pairs<W>& pairs, PairSums<W>& sums, const float (&a)[W::kStates],
                                        const float (&start)[W::kStates], const float (&h)[W::kTile][W::kStates], float (&e)[W::kStates],
                                        float (&da)[W::kStates]) {
  const int channel = W::channel(), warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int t0 = W::kTile - W::kTogether; t0 >= 0; t0 -= W::kTogether) {
    float inputs[W::kTogether] = {}, steps[W::kTogether] = {};
#pragma unroll
    for (int i = W::kTogether - 1; i >= 0; --i) {
      const int t = t0 + i;
      float b[W::kStates], c[W::kStates], pair[2 * W::kStates];
      load_row(pairs.b[t] + W::first_state(), b);
      load_row(pairs.c[t] + W::first_state(), c);
      const float s = rows.step[t][channel], su = rows.input[t][channel], dy = rows.dy[t][channel];
#pragma unroll
      for (int n = 0; n < W::kStates; ++n) {
        e[n] += c[n] * dy;
        pair[n] = e[n] * su;
        pair[W::kStates + n] = dy * h[t][n];
        inputs[i] += e[n] * b[n];
        e[n] *= exp2_approximate(s * a[n]);
        const float kappa = e[n] * (t > 0 ? h[t > 0 ? t - 1 : 0][n] : start[n]);
        steps[i] += a[n] * kappa;
        da[n] += s * kappa;
      }
      sum_pairs<W>(pair, sums.of_warp[warp][t]);
    }
    lane_sums<W::kTogether, 16, W::kSpan>(inputs);
    lane_sums<W::kTogether, 16, W::kSpan>(steps);
    rows.d_input[t0 + W::summed_token()][channel] = inputs[0];
    rows.d_step[t0 + W::summed_token()][channel] = steps[0];
  }
}

template <class W, class T>
__device__ __forceinline__ void load_tile(const Inputs<T>& x, const T* dy, const Place& at, int t0, TileRows<W>& rows) {
  for_elements<W>(x, at, t0, [&](int t, int c, int64_t element, bool inside) {
    const float step = inside ? softplus(to_float(x.dt[element]) + x.bias[at.first + c]) : 0.0f;
    rows.step[t][c] = step;
    rows.input[t][c] = inside ? step * to_float(x.u[element]) : 0.0f;
    const float z = inside ? to_float(x.z[element]) : 0.0f;
    rows.dy[t][c] = inside ? to_float(dy[element]) * z * sigmoid(z) : 0.0f;
  });
}

/// du, dΔraw and dz of the tile; adds to the sums over tokens that this thread keeps for its channel.
template <class W, class T>
__device__ __forceinline__ void token_gradients(const Inputs<T>& x, const Gradients<T>& out, const Place& at, int t0,
                                                const TileRows<W>& rows, float& d_bias, float& d_skip) {
  for_elements<W>(x, at, t0, [&](int t, int c, int64_t element, bool inside) {
    if (!inside) return;
    const int d = at.first + c;
    const float u = to_float(x.u[element]), z = to_float(x.z[element]), skip = x.skip[d], s = sigmoid(z), gated = rows.dy[t][c];
    out.u.put(element, skip * gated + rows.step[t][c] * rows.d_input[t][c]);
    out.z.put(element, to_float(out.dy[element]) * (rows.sum[t][c] + skip * u) * s * (1 + z * (1 - s)));
    const float d_raw = (u * rows.d_input[t][c] + kLn2 * rows.d_step[t][c]) * sigmoid(to_float(x.dt[element]) + x.bias[d]);
    out.dt.put(element, d_raw);
    d_bias += d_raw;
    d_skip += gated * u;
  });
}

template <class W, class T>
__device__ __forceinline__ void store_pairs(const Inputs<T>& x, const Place& at, int t0, const PairSums<W>& sums, float* parts) {
  constexpr int kRow = 2 * W::kPadded;
  float* to = parts + ((blockIdx.x * int64_t{gridDim.y} + at.sequence) * x.length + t0) * kRow;
  for (int i = static_cast<int>(threadIdx.x); i < W::kTile * kRow && t0 + i / kRow < x.length; i += kThreads) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kThreads / 32; ++w) sum += sums.of_warp[w][i / kRow][i % kRow];
    to[i] = sum;
  }
}

/// Parts [B, D, padded + 2]: dA, then dbias and dD, whose sums lie in the threads of a channel.
template <class W, class T>
__device__ __forceinline__ void store_parts(const Inputs<T>& x, const Place& at, const float (&da)[W::kStates], float d_bias, float d_skip,
                                            float* parts) {
  __shared__ float bias_sums[kThreads], skip_sums[kThreads];
  bias_sums[threadIdx.x] = d_bias, skip_sums[threadIdx.x] = d_skip;
  __syncthreads();
  const int d = at.first + W::channel();
  constexpr int kRow = W::kPadded + 2;
  if (d < x.width)
    for (int n = 0; n < W::kStates; ++n) parts[(at.sequence * x.width + d) * kRow + W::first_state() + n] = da[n];
  const int own = static_cast<int>(threadIdx.x);
  if (own >= W::kChannels || at.first + own >= x.width) return;
  float* to = parts + (at.sequence * x.width + at.first + own) * kRow + W::kPadded;
  to[0] = to[1] = 0;
  for (int i = own; i < kThreads; i += W::kChannels) to[0] += bias_sums[i], to[1] += skip_sums[i];
}

template <class T, class W>
__global__ void __launch_bounds__(kThreads, W::kTile == 16 ? 4 : 1) reverse_kernel(Inputs<T> x, Gradients<T> out) {
  __shared__ TileRows<W> rows;
  __shared__ Pairs<W> pairs;
  __shared__ PairSums<W> sums;
  const Place at{static_cast<int>(blockIdx.x) * W::kChannels, blockIdx.y};
  const int d = at.first + W::channel();
  float a[W::kStates], e[W::kStates], da[W::kStates] = {}, d_bias = 0, d_skip = 0;
  load_decays<W>(x, d, a);
  load_state<W>(x, out.d_end, at.sequence, d, e);
  for (int tile = (x.length - 1) / W::kTile; tile >= 0; --tile) {
    const int t0 = tile * W::kTile;
    float start[W::kStates] = {}, h[W::kTile][W::kStates];
    if (d < x.width) load_row(out.starts + start_offset<W>(x, at.sequence, tile, d), start);
    __syncthreads();
    load_tile<W>(x, out.dy, at, t0, rows);
    load_pairs<W>(x, at, t0, pairs);
    __syncthreads();
    recompute<W>(rows, pairs, a, start, h);
    reverse<W>(rows, pairs, sums, a, start, h, e, da);
    __syncthreads();
    token_gradients<W>(x, out, at, t0, rows, d_bias, d_skip);
    store_pairs<W>(x, at, t0, sums, out.pair_parts);
  }
  if (out.d_start) store_state<W>(x, e, at.sequence, d, out.d_start);
  store_parts<W>(x, at, da, d_bias, d_skip, out.parts);
}

/// dB and dC: Σ over blocks of channels, in order. A thread owns a token and a column of both.
template <class T>
__global__ void sum_pairs_kernel(const float* parts, int blocks, int64_t rows, int states, int padded, Target<T> b, Target<T> c) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x, row = i / (2 * padded);
  const int column = static_cast<int>(i % (2 * padded)), n = column % padded;
  if (row >= rows || n >= states) return;
  float sum = 0;
  for (int block = 0; block < blocks; ++block) sum += parts[(block * rows + row) * 2 * padded + column];
  (column < padded ? b : c).put(row * states + n, sum);
}

/// dA_log = A Σ dA, dbias and dD: Σ over sequences, in order. A thread owns a channel and a column of the parts.
__global__ void sum_parts_kernel(const float* parts, int64_t batch, int64_t width, int states, int padded, const float* a_log,
                                 Target<float> to_a_log, Target<float> bias, Target<float> skip) {
  const int row = padded + 2;
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x, d = i / row;
  const int column = static_cast<int>(i % row);
  if (d >= width || (column >= states && column < padded)) return;
  float sum = 0;
  for (int64_t b = 0; b < batch; ++b) sum += parts[(b * width + d) * row + column];
  if (column < states)
    to_a_log.put(d * states + column, -expf(a_log[d * states + column]) * sum);
  else
    (column == padded ? bias : skip).put(d, sum);
}

template <class T>
void backward(Stream stream, const Mamba1Scan& in, const ScanBackward& out) {
  const int64_t batch = in.u.dim(0), length = in.u.dim(1), width = in.u.dim(2);
  const Inputs<T> x = inputs_of<T>(in);
  const Gradients<T> to{pointer<T>(out.dy),        maybe<float>(out.d_end),      maybe<float>(out.starts),
                        target_of<T>(out.u),       target_of<T>(out.dt),         target_of<T>(out.z),
                        maybe<float>(out.d_start), maybe<float>(out.pair_parts), maybe<float>(out.parts)};
  with_widths(x.states, [&](auto at) {
    using W = Widths<decltype(at)::value>;
    const unsigned blocks = blocks_for(width, W::kChannels);
    reverse_kernel<T, W><<<dim3(blocks, static_cast<unsigned>(batch)), kThreads, 0, stream>>>(x, to);
    check_launch();
    const int64_t pairs = batch * length * 2 * W::kPadded, parameters = width * (W::kPadded + 2);
    if (out.b || out.c)
      sum_pairs_kernel<<<blocks_for(pairs, kThreads), kThreads, 0, stream>>>(
          to.pair_parts, static_cast<int>(blocks), batch * length, x.states, W::kPadded, target_of<T>(out.b), target_of<T>(out.c));
    sum_parts_kernel<<<blocks_for(parameters, kThreads), kThreads, 0, stream>>>(to.parts, batch, width, x.states, W::kPadded, x.a_log,
                                                                                target_of<float>(out.a_log), target_of<float>(out.dt_bias),
                                                                                target_of<float>(out.skip));
    check_launch();
  });
}

}  // namespace
}  // namespace scan

void selective_scan_backward(Stream stream, const Mamba1Scan& in, const ScanBackward& out) {
  scan::scan_starts(stream, in, out.starts);
  dispatch_cuda(in.u.dtype(), [&](auto zero) { scan::backward<decltype(zero)>(stream, in, out); });
}

}  // namespace saccade::cuda
