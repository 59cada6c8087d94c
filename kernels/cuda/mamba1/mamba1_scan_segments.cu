// What goes from segment to segment of a sequence, forward the states, backward their gradients.
#include "kernels/cuda/mamba1/mamba1_scan.cuh"

namespace saccade::cuda::scan {
namespace {

/// The gradient that every segment but the first leaves at its start, from zeros at its end, and ΣΔ: E ← e^{ΔA} (E + C dỹ).
template <class T, class W, int kVector>
__global__ void __launch_bounds__(kThreads) segment_gradients_kernel(Inputs<T> x, const T* dy, float* to, float* to_steps) {
  using E = Elements<W, T, kVector>;
  __shared__ Rows<W> step, gated;
  __shared__ Columns<W> c;
  const BlockSpan at(x, W::kChannels);
  if (at.begin == 0) return;
  const E elements{x, at};
  const int channel = W::channel(), d = at.first + channel;
  float a[W::kStates], e[W::kStates] = {}, steps = 0;
  load_decays<W>(x, d, a);
  const typename E::V bias = elements.parameter(x.bias);
  for (int t0 = at.begin + (at.end - at.begin - 1) / W::kTile * W::kTile; t0 >= at.begin; t0 -= W::kTile) {
    typename E::P dt[E::kCount], z[E::kCount], d_out[E::kCount];
    elements.fetch(x.dt, t0, dt);
    elements.fetch(x.z, t0, z);
    elements.fetch(dy, t0, d_out);
    load_columns(x, x.c, at, t0, c);
#pragma unroll
    for (int i = 0; i < E::kCount; ++i) {
      E::put(step, i, elements.steps(t0, i, dt[i], bias));
      E::put(gated, i, elements.gated(d_out[i], z[i]));
    }
    __syncthreads();
#pragma unroll
    for (int t = W::kTile - 1; t >= 0; --t) {
      float ct[W::kStates];
      load_row(c[t], ct);
      const float s = step[t][channel], g = gated[t][channel];
      steps += s;
#pragma unroll
      for (int n = 0; n < W::kStates; ++n) e[n] = exp2_approximate(s * a[n]) * (e[n] + ct[n] * g);
    }
    __syncthreads();
  }
  store_state<W>(x, e, at.line, d, to);
  if (W::group() == 0 && d < x.width) to_steps[at.line * x.width + d] = steps;
}

/// A thread owns a channel and a state of a sequence.
__global__ void __launch_bounds__(kThreads) carry_kernel(const float* a_log, const float* start, const float* steps, int64_t size,
                                                         int width, int states, int segments, bool back, float* at_segment) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x, row = int64_t{width} * states, b = i / row;
  if (i >= size) return;
  const float a = -expf(a_log[i % row]) * kLog2E;
  float carried = start ? start[i] : 0.0f;
  for (int k = 0; k < segments; ++k) {
    const int64_t line = b * segments + (back ? segments - 1 - k : k);
    float& place = at_segment[line * row + i % row];
    const bool last = k + 1 == segments;
    const float own = last ? 0.0f : place, sum = last ? 0.0f : steps[line * width + i % row / states];
    place = carried;
    carried = exp2_approximate(a * sum) * carried + own;
  }
}

}  // namespace

void carry_on(Stream stream, const Mamba1Scan& in, const Tensor& start, const SegmentStates& segments, bool back) {
  const int64_t size = in.u.dim(0) * in.a_log.size();
  carry_kernel<<<blocks_for(size, kThreads), kThreads, 0, stream>>>(
      pointer<float>(in.a_log), pointer_or_null<float>(start), pointer<float>(segments.steps), size, static_cast<int>(in.u.dim(2)),
      static_cast<int>(in.b.dim(2)), static_cast<int>(segments.states.dim(1)), back, pointer<float>(segments.states));
  check_launch();
}

void find_segment_ends(Stream stream, const Mamba1Scan& in, const Tensor& dy, const Tensor& d_end, const SegmentStates& to) {
  with_widths(in.b.dim(2), [&](auto at) {
    using W = Widths<decltype(at)::value>;
    dispatch_cuda(in.u.dtype(), [&](auto zero) {
      in_pieces<4>(in.u.dim(2), [&](auto vector) {
        using T = decltype(zero);
        const Inputs<T> x = inputs_of<T>(in);
        segment_gradients_kernel<T, W, decltype(vector)::value>
            <<<grid_of<W>(x), kThreads, 0, stream>>>(x, pointer<T>(dy), pointer<float>(to.states), pointer<float>(to.steps));
      });
    });
  });
  check_launch();
  carry_on(stream, in, d_end, to, true);
}

}  // namespace saccade::cuda::scan
