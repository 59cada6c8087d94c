#include "kernels/cuda/mamba1/mamba1_scan.cuh"

namespace saccade::cuda {
namespace scan {
namespace {

/// What a pass through the states gives: y and the last state; the state before every tile; or the last state of every segment but the
/// last, from zeros, with ΣΔ.
enum class Pass { outputs, tile_starts, segment_ends };

struct Targets {
  float *end = nullptr, *tile_starts = nullptr, *segment_ends = nullptr, *steps = nullptr;
};

/// h through the tile; Σ_n C h for `outputs`, ΣΔ for `segment_ends`.
template <class W, Pass kPass>
__device__ __forceinline__ void advance(const Rows<W>& step, const Rows<W>& input, const Columns<W>& b, const Columns<W>& c,
                                        const float (&a)[W::kStates], float (&h)[W::kStates], Rows<W>& sum, float& steps) {
  constexpr bool kRead = kPass == Pass::outputs;
  const int channel = W::channel();
#pragma unroll
  for (int t = 0; t < W::kTile; t += W::kTogether) {
    float reads[W::kTogether] = {};
#pragma unroll
    for (int i = 0; i < W::kTogether; ++i) {
      float bt[W::kStates], ct[W::kStates];
      load_row(b[t + i], bt);
      if (kRead) load_row(c[t + i], ct);
      const float s = step[t + i][channel], su = input[t + i][channel];
      if (kPass == Pass::segment_ends) steps += s;
#pragma unroll
      for (int n = 0; n < W::kStates; ++n) {
        h[n] = exp2_approximate(s * a[n]) * h[n] + su * bt[n];
        if (kRead) reads[i] += ct[n] * h[n];
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
  const typename E::V skip = e.parameter(e.x.skip);
#pragma unroll
  for (int i = 0; i < E::kCount; ++i) {
    if (!e.inside(t0, i)) continue;
    typename E::V made;
#pragma unroll
    for (int j = 0; j < E::kVector; ++j)
      made.v[j] = (sum[E::token(i)][E::channel() + j] + skip.v[j] * to_float(u[i].v[j])) * silu(to_float(z[i].v[j]));
    store_values(y + e.element(t0, i), made);
  }
}

/// What a thread brings of a tile: fetched before the states go through the tile in front, so that they need not wait for memory.
template <class W, class E, class T, Pass kPass>
struct Fetched {
  typename E::P u[E::kCount], dt[E::kCount], z[E::kCount];
  ColumnPieces<W, T> b, c;

  __device__ Fetched(const E& e, int t0) {
    e.fetch(e.x.u, t0, u);
    e.fetch(e.x.dt, t0, dt);
    b.fetch(e.x, e.x.b, e.at, t0);
    if (kPass != Pass::outputs) return;
    e.fetch(e.x.z, t0, z);
    c.fetch(e.x, e.x.c, e.at, t0);
  }
};

/// `start` has a line for every segment.
template <class T, class W, int kVector, Pass kPass>
__global__ void __launch_bounds__(kThreads, W::kTile == 16 ? 6 : 1) scan_kernel(Inputs<T> x, const float* start, T* y, Targets to) {
  using E = Elements<W, T, kVector>;
  __shared__ Rows<W> step, input, sum;
  __shared__ Columns<W> b, c;
  const BlockSpan at(x, W::kChannels);
  if (kPass == Pass::segment_ends && at.end == x.length) return;
  const E e{x, at};
  const int d = at.first + W::channel();
  float a[W::kStates], h[W::kStates], steps = 0;
  load_decays<W>(x, d, a);
  load_state<W>(x, start, at.line, d, h);
  const typename E::V bias = e.parameter(x.bias);
  Fetched<W, E, T, kPass> next(e, at.begin);
  for (int t0 = at.begin; t0 < at.end; t0 += W::kTile) {
    const Fetched<W, E, T, kPass> now = next;
    now.b.put(b);
    if (kPass == Pass::outputs) now.c.put(c);
#pragma unroll
    for (int i = 0; i < E::kCount; ++i) {
      const typename E::V made = e.steps(t0, i, now.dt[i], bias);
      E::put(step, i, made);
      E::put(input, i, e.drives(made, now.u[i]));
    }
    if (kPass == Pass::tile_starts && d < x.width) store_row(h, to.tile_starts + start_offset<W>(x, at, t0 / W::kTile));
    __syncthreads();
    next = Fetched<W, E, T, kPass>(e, t0 + W::kTile);
    advance<W, kPass>(step, input, b, c, a, h, sum, steps);
    __syncthreads();
    if constexpr (kPass == Pass::outputs) store_outputs<W>(e, t0, now.u, now.z, sum, y);
  }
  if (kPass == Pass::outputs && to.end && at.end == x.length) store_state<W>(x, h, at.sequence, d, to.end);
  if (kPass != Pass::segment_ends) return;
  store_state<W>(x, h, at.line, d, to.segment_ends);
  if (W::group() == 0 && d < x.width) to.steps[at.line * x.width + d] = steps;
}

template <Pass kPass>
void launch(Stream stream, const Mamba1Scan& in, const Tensor& start, const Tensor& y, const Targets& to) {
  with_widths(in.b.dim(2), [&](auto at) {
    using W = Widths<decltype(at)::value>;
    dispatch_cuda(in.u.dtype(), [&](auto zero) {
      in_pieces<4>(in.u.dim(2), [&](auto vector) {
        using T = decltype(zero);
        const Inputs<T> x = inputs_of<T>(in);
        scan_kernel<T, W, decltype(vector)::value, kPass>
            <<<grid_of<W>(x), kThreads, 0, stream>>>(x, pointer_or_null<float>(start), pointer_or_null<T>(y), to);
      });
    });
  });
  check_launch();
}

}  // namespace

void find_tile_starts(Stream stream, const Mamba1Scan& in, const Tensor& segment_starts, const Tensor& to) {
  launch<Pass::tile_starts>(stream, in, segment_starts ? segment_starts : in.state.start, {}, {.tile_starts = pointer<float>(to)});
}

}  // namespace scan

void selective_scan(Stream stream, const Mamba1Scan& in, const SegmentStates& segments, const Tensor& y, const Tensor& end) {
  using namespace scan;
  const bool one = !segments.states;
  if (!one) {
    launch<Pass::segment_ends>(stream, in, {}, {},
                               {.segment_ends = pointer<float>(segments.states), .steps = pointer<float>(segments.steps)});
    carry_on(stream, in, in.state.start, segments, false);
  }
  launch<Pass::outputs>(stream, in, one ? in.state.start : segments.states, y, {.end = pointer_or_null<float>(end)});
}

}  // namespace saccade::cuda
