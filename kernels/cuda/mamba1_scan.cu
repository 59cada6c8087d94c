#include "kernels/cuda/mamba1_scan.cuh"

namespace saccade::cuda {
namespace scan {
namespace {

/// h through the tile, and Σ_n C h when kRead.
template <class W, bool kRead>
__device__ __forceinline__ void advance(const Rows<W>& drive, const Rows<W>& input, const Pairs<W>& pairs, const float (&a)[W::kStates],
                                        float (&h)[W::kStates], Rows<W>& sum) {
  const int channel = W::channel();
#pragma unroll
  for (int t = 0; t < W::kTile; t += W::kTogether) {
    float reads[W::kTogether] = {};
#pragma unroll
    for (int i = 0; i < W::kTogether; ++i) {
      float b[W::kStates], c[W::kStates];
      load_row(pairs.b[t + i] + W::first_state(), b);
      if (kRead) load_row(pairs.c[t + i] + W::first_state(), c);
      const float s = drive[t + i][channel], su = input[t + i][channel];
#pragma unroll
      for (int n = 0; n < W::kStates; ++n) {
        h[n] = exp2_approximate(s * a[n]) * h[n] + su * b[n];
        if (kRead) reads[i] += c[n] * h[n];
      }
    }
    if constexpr (kRead) {
      lane_sums<W::kTogether, 16, W::kSpan>(reads);
      sum[t + W::summed_token()][channel] = reads[0];
    }
  }
}

/// y = (Σ_n C h + D u) silu(z)
template <class W, class E, class T>
__device__ __forceinline__ void store_outputs(const E& e, int t0, const typename E::P (&u)[E::kCount], const typename E::P (&z)[E::kCount],
                                              const Rows<W>& sum, T* y) {
  float skip[E::kVector];
  e.parameter(e.x.skip, skip);
#pragma unroll
  for (int i = 0; i < E::kCount; ++i) {
    if (!e.inside(t0, i)) continue;
    typename E::P made;
#pragma unroll
    for (int j = 0; j < E::kVector; ++j) {
      const float gate = to_float(z[i].v[j]), read = sum[E::token(i)][E::channel() + j] + skip[j] * to_float(u[i].v[j]);
      made.v[j] = from_float<T>(read * gate * sigmoid(gate));
    }
    *reinterpret_cast<typename E::P*>(y + e.element(t0, i)) = made;
  }
}

/// kRead: y and the end; otherwise the state before every tile.
template <class T, class W, int kVector, bool kRead>
__global__ void __launch_bounds__(kThreads) scan_kernel(Inputs<T> x, const float* start, T* y, float* end, float* starts) {
  using E = Elements<W, T, kVector>;
  __shared__ Rows<W> drive, input, sum;
  __shared__ Pairs<W> pairs;
  const Place at{static_cast<int>(blockIdx.x) * W::kChannels, blockIdx.y};
  const E e{x, at};
  const int d = at.first + W::channel();
  float a[W::kStates], h[W::kStates], bias[kVector];
  load_decays<W>(x, d, a);
  load_state<W>(x, start, at.sequence, d, h);
  e.parameter(x.bias, bias);
  for (int t0 = 0; t0 < x.length; t0 += W::kTile) {
    typename E::P u[E::kCount], dt[E::kCount], z[E::kCount];
    e.fetch(x.u, t0, u);
    e.fetch(x.dt, t0, dt);
    if (kRead) e.fetch(x.z, t0, z);
    load_pairs<W>(x, at, t0, pairs);
#pragma unroll
    for (int i = 0; i < E::kCount; ++i) {
      if (E::token(i) >= W::kTile) break;
      const Steps<E> steps(e, t0, i, u[i], dt[i], bias);
      E::put(drive[E::token(i)], steps.drive);
      E::put(input[E::token(i)], steps.input);
    }
    if (!kRead && d < x.width) store_row(h, starts + start_offset<W>(x, at.sequence, t0 / W::kTile, d));
    __syncthreads();
    advance<W, kRead>(drive, input, pairs, a, h, sum);
    __syncthreads();
    if constexpr (kRead) store_outputs<W>(e, t0, u, z, sum, y);
  }
  if (kRead && end) store_state<W>(x, h, at.sequence, d, end);
}

template <bool kRead>
void launch(Stream stream, const Mamba1Scan& in, const Tensor& y, const Tensor& end, const Tensor& starts) {
  with_widths(in.b.dim(2), [&](auto at) {
    using W = Widths<decltype(at)::value>;
    const dim3 grid(blocks_for(in.u.dim(2), W::kChannels), static_cast<unsigned>(in.u.dim(0)));
    dispatch_cuda(in.u.dtype(), [&](auto zero) {
      with_vector(in.u.dim(2), [&](auto vector) {
        using T = decltype(zero);
        scan_kernel<T, W, decltype(vector)::value, kRead>
            <<<grid, kThreads, 0, stream>>>(inputs_of<T>(in), pointer_or_null<float>(in.state.start), pointer_or_null<T>(y),
                                            pointer_or_null<float>(end), pointer_or_null<float>(starts));
      });
    });
  });
  check_launch();
}

}  // namespace

void scan_starts(Stream stream, const Mamba1Scan& in, const Tensor& starts) { launch<false>(stream, in, {}, {}, starts); }

}  // namespace scan

void selective_scan(Stream stream, const Mamba1Scan& in, const Tensor& y, const Tensor& end) { scan::launch<true>(stream, in, y, end, {}); }

}  // namespace saccade::cuda
