#include "kernels/cuda/gradient_target.cuh"
#include "kernels/cuda/mamba1_scan.cuh"

namespace saccade::cuda {
namespace scan {
namespace {

/// kRead: y and the end; otherwise the state before every tile.
template <class T, class W, bool kRead>
__global__ void __launch_bounds__(kThreads) scan_kernel(Inputs<T> x, const float* start, T* y, float* end, float* starts) {
  __shared__ Rows<W> step, input, sum;
  __shared__ Pairs<W> pairs;
  const Place at{static_cast<int>(blockIdx.x) * W::kChannels, blockIdx.y};
  const int channel = W::channel(), d = at.first + channel;
  float a[W::kStates], h[W::kStates];
  load_decays<W>(x, d, a);
  load_state<W>(x, start, at.sequence, d, h);
  for (int t0 = 0; t0 < x.length; t0 += W::kTile) {
    __syncthreads();
    for_elements<W>(x, at, t0, [&](int t, int c, int64_t element, bool inside) {
      step[t][c] = inside ? softplus(to_float(x.dt[element]) + x.bias[at.first + c]) : 0.0f;
      input[t][c] = inside ? step[t][c] * to_float(x.u[element]) : 0.0f;
    });
    load_pairs<W>(x, at, t0, pairs);
    if (!kRead && d < x.width) {
      float* to = starts + start_offset<W>(x, at.sequence, t0 / W::kTile, d);
#pragma unroll
      for (int n = 0; n < W::kStates; n += 4) *reinterpret_cast<float4*>(to + n) = make_float4(h[n], h[n + 1], h[n + 2], h[n + 3]);
    }
    __syncthreads();
#pragma unroll
    for (int t = 0; t < W::kTile; t += W::kTogether) {
      float reads[W::kTogether] = {};
#pragma unroll
      for (int i = 0; i < W::kTogether; ++i) {
        float b[W::kStates], c[W::kStates];
        load_row(pairs.b[t + i] + W::first_state(), b);
        if (kRead) load_row(pairs.c[t + i] + W::first_state(), c);
        const float s = step[t + i][channel], su = input[t + i][channel];
#pragma unroll
        for (int n = 0; n < W::kStates; ++n) {
          h[n] = exp2_approximate(s * a[n]) * h[n] + su * b[n];
          if (kRead) reads[i] += c[n] * h[n];
        }
      }
      if (!kRead) continue;
      lane_sums<W::kTogether, 16, W::kSpan>(reads);
      sum[t + W::summed_token()][channel] = reads[0];
    }
    if (!kRead) continue;
    __syncthreads();
    for_elements<W>(x, at, t0, [&](int t, int c, int64_t element, bool inside) {
      if (!inside) return;
      const float u = to_float(x.u[element]), z = to_float(x.z[element]);
      y[element] = from_float<T>((sum[t][c] + x.skip[at.first + c] * u) * z * sigmoid(z));
    });
  }
  if (kRead && end) store_state<W>(x, h, at.sequence, d, end);
}

template <bool kRead>
void launch(Stream stream, const Mamba1Scan& in, const Tensor& y, const Tensor& end, const Tensor& starts) {
  with_widths(in.b.dim(2), [&](auto at) {
    using W = Widths<decltype(at)::value>;
    const dim3 grid(blocks_for(in.u.dim(2), W::kChannels), static_cast<unsigned>(in.u.dim(0)));
    dispatch_cuda(in.u.dtype(), [&](auto zero) {
      using T = decltype(zero);
      scan_kernel<T, W, kRead><<<grid, kThreads, 0, stream>>>(inputs_of<T>(in), maybe<float>(in.state.start), maybe<T>(y),
                                                              maybe<float>(end), maybe<float>(starts));
    });
  });
  check_launch();
}

}  // namespace

void scan_starts(Stream stream, const Mamba1Scan& in, const Tensor& starts) { launch<false>(stream, in, {}, {}, starts); }

}  // namespace scan

void selective_scan(Stream stream, const Mamba1Scan& in, const Tensor& y, const Tensor& end) { scan::launch<true>(stream, in, y, end, {}); }

}  // namespace saccade::cuda
