#include "kernels/cuda/mamba1/mamba1_scan.cuh"

namespace saccade::cuda {
namespace scan {
namespace {

template <class T>
struct Gradients {
  const T* dy;
  const float *d_end, *starts;  ///< d_end has a line for every segment
  Goal<T> u, dt, z;
  float *d_start, *pair_parts, *parts;
};

template <class W>
struct TileRows {
  Rows<W> step, input, dy;       ///< Δ, Δ u and dỹ
  Rows<W> sum, d_input, d_step;  ///< Σ_n C h, Σ_n E B and Σ_n κ A log₂ e
  Columns<W> b, c;
};
/// States of kHeld tokens stay in registers; those before them are made again.
template <class W>
constexpr int kHeld = W::kTile < 8 ? W::kTile : 8;
template <class W>
struct alignas(16) PairSums {
  float of_warp[kThreads / 32][W::kTile][2 * W::kPadded];  ///< Σ over its channels of E Δu, then of dỹ h
};

/// h behind the first `count` tokens of the tile.
template <class W>
__device__ __forceinline__ void pass_over(const TileRows<W>& rows, int count, const float (&a)[W::kStates], float (&h)[W::kStates]) {
#pragma unroll
  for (int t = 0; t < count; ++t) {
    float b[W::kStates];
    load_row(rows.b[t], b);
    const float s = rows.step[t][W::channel()], su = rows.input[t][W::channel()];
#pragma unroll
    for (int n = 0; n < W::kStates; ++n) h[n] = exp2_approximate(s * a[n]) * h[n] + su * b[n];
  }
}

/// h of kHeld tokens from `first`, and Σ_n C h.
template <class W>
__device__ __forceinline__ void recompute(TileRows<W>& rows, int first, const float (&a)[W::kStates], const float (&start)[W::kStates],
                                          float (&h)[kHeld<W>][W::kStates]) {
  const int channel = W::channel();
#pragma unroll
  for (int t0 = 0; t0 < kHeld<W>; t0 += W::kTogether) {
    float reads[W::kTogether] = {};
#pragma unroll
    for (int i = 0; i < W::kTogether; ++i) {
      const int k = t0 + i, t = first + k;
      float b[W::kStates], c[W::kStates];
      load_row(rows.b[t], b);
      load_row(rows.c[t], c);
      const float s = rows.step[t][channel], su = rows.input[t][channel];
#pragma unroll
      for (int n = 0; n < W::kStates; ++n) {
        h[k][n] = exp2_approximate(s * a[n]) * (k > 0 ? h[k > 0 ? k - 1 : 0][n] : start[n]) + su * b[n];
        reads[i] += c[n] * h[k][n];
      }
    }
    lane_sums<W::kTogether, 16, W::kSpan>(reads);
    rows.sum[first + t0 + W::summed_token()][channel] = reads[0];
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

/// Through the tokens of `recompute` from the last to the first, E the gradient of h_t:
///   E += C dỹ,  dC = Σ_d dỹ h,  dB = Σ_d E Δu,  E ← e^{ΔA} E,  κ = E h_{t−1},  dA += Δ κ
template <class W>
__device__ __forceinline__ void reverse(TileRows<W>& rows, PairSums<W>& sums, int first, const float (&a)[W::kStates],
                                        const float (&start)[W::kStates], const float (&h)[kHeld<W>][W::kStates], float (&e)[W::kStates],
                                        float (&da)[W::kStates]) {
  const int channel = W::channel(), warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int t0 = kHeld<W> - W::kTogether; t0 >= 0; t0 -= W::kTogether) {
    float inputs[W::kTogether] = {}, steps[W::kTogether] = {};
#pragma unroll
    for (int i = W::kTogether - 1; i >= 0; --i) {
      const int k = t0 + i, t = first + k;
      float b[W::kStates], c[W::kStates], pair[2 * W::kStates];
      load_row(rows.b[t], b);
      load_row(rows.c[t], c);
      const float s = rows.step[t][channel], su = rows.input[t][channel], dy = rows.dy[t][channel];
#pragma unroll
      for (int n = 0; n < W::kStates; ++n) {
        e[n] += c[n] * dy;
        pair[n] = e[n] * su;
        pair[W::kStates + n] = dy * h[k][n];
        inputs[i] += e[n] * b[n];
        e[n] *= exp2_approximate(s * a[n]);
        const float kappa = e[n] * (k > 0 ? h[k > 0 ? k - 1 : 0][n] : start[n]);
        steps[i] += a[n] * kappa;
        da[n] += s * kappa;
      }
      sum_pairs<W>(pair, sums.of_warp[warp][t]);
    }
    lane_sums<W::kTogether, 16, W::kSpan>(inputs);
    lane_sums<W::kTogether, 16, W::kSpan>(steps);
    rows.d_input[first + t0 + W::summed_token()][channel] = inputs[0];
    rows.d_step[first + t0 + W::summed_token()][channel] = steps[0];
  }
}

/// What a thread has of the tile's elements.
template <class E>
struct Fetched {
  typename E::P u[E::kCount], dt[E::kCount], z[E::kCount], dy[E::kCount];

  template <class T>
  __device__ Fetched(const E& e, const T* d_out, int t0) {
    e.fetch(e.x.u, t0, u);
    e.fetch(e.x.dt, t0, dt);
    e.fetch(e.x.z, t0, z);
    e.fetch(d_out, t0, dy);
  }
};

template <class W, class E, class T>
__device__ __forceinline__ void load_tile(const E& e, const T* dy, int t0, TileRows<W>& rows) {
  const Fetched<E> f(e, dy, t0);
  const typename E::V bias = e.parameter(e.x.bias);
#pragma unroll
  for (int i = 0; i < E::kCount; ++i) {
    const typename E::V step = e.steps(t0, i, f.dt[i], bias);
    E::put(rows.step, i, step);
    E::put(rows.input, i, e.drives(step, f.u[i]));
    E::put(rows.dy, i, e.gated(f.dy[i], f.z[i]));
  }
  load_columns(e.x, e.x.b, e.at, t0, rows.b);
  load_columns(e.x, e.x.c, e.at, t0, rows.c);
}

/// Sums over tokens that a thread keeps for its channels, in shared memory for want of registers.
template <class E>
struct alignas(16) ParameterSums {
  float bias[kThreads * E::kVector], skip[kThreads * E::kVector];

  static __device__ int own() { return static_cast<int>(threadIdx.x) * E::kVector; }
  __device__ void clear() { store_values(bias + own(), typename E::V()), store_values(skip + own(), typename E::V()); }
  __device__ void add(const typename E::V& to_bias, const typename E::V& to_skip) {
    store_values(bias + own(), to_bias, true), store_values(skip + own(), to_skip, true);
  }
};

/// du, dΔraw and dz of the tile, whose elements are fetched again for want of registers.
template <class W, class E, class T>
__device__ __forceinline__ void token_gradients(const E& e, const Gradients<T>& out, int t0, const TileRows<W>& rows,
                                                ParameterSums<E>& sums) {
  const Fetched<E> f(e, out.dy, t0);
  const typename E::V bias = e.parameter(e.x.bias), skip = e.parameter(e.x.skip);
#pragma unroll
  for (int i = 0; i < E::kCount; ++i) {
    if (!e.inside(t0, i)) continue;
    const typename E::V step = E::get(rows.step, i), gated = E::get(rows.dy, i), sum = E::get(rows.sum, i),
                        d_input = E::get(rows.d_input, i), d_step = E::get(rows.d_step, i);
    typename E::V du, dz, d_raw, d_skip;
#pragma unroll
    for (int j = 0; j < E::kVector; ++j) {
      const float u = to_float(f.u[i].v[j]);
      du.v[j] = skip.v[j] * gated.v[j] + step.v[j] * d_input.v[j];
      dz.v[j] = to_float(f.dy[i].v[j]) * (sum.v[j] + skip.v[j] * u) * silu_slope(to_float(f.z[i].v[j]));
      d_raw.v[j] = (u * d_input.v[j] + kLn2 * d_step.v[j]) * sigmoid(to_float(f.dt[i].v[j]) + bias.v[j]);
      d_skip.v[j] = gated.v[j] * u;
    }
    sums.add(d_raw, d_skip);
    const int64_t element = e.element(t0, i);
    out.u.put(element, du);
    out.z.put(element, dz);
    out.dt.put(element, d_raw);
  }
}

template <class W, class T>
__device__ __forceinline__ void store_pairs(const Inputs<T>& x, const BlockSpan& at, int t0, const PairSums<W>& sums, float* parts) {
  constexpr int kRow = 2 * W::kPadded;
  float* to = parts + ((blockIdx.x * int64_t{x.batch} + at.sequence) * x.length + t0) * kRow;
  for (int i = static_cast<int>(threadIdx.x) * 4; i < W::kTile * kRow && t0 + i / kRow < x.length; i += kThreads * 4) {
    Values<4> sum;
#pragma unroll
    for (int w = 0; w < kThreads / 32; ++w) {
      const Values<4> own = load_values<4>(&sums.of_warp[w][0][0] + i);
#pragma unroll
      for (int j = 0; j < 4; ++j) sum.v[j] += own.v[j];
    }
    store_values(to + i, sum);
  }
}

/// Parts [lines, D, padded + 2]: dA, then dbias and dD, whose sums lie in the threads of a channel.
template <class W, class E>
__device__ __forceinline__ void store_parts(const E& e, const float (&da)[W::kStates], const ParameterSums<E>& sums, float* parts) {
  __syncthreads();
  const int64_t channels = e.at.line * e.x.width, d = e.at.first + W::channel();
  constexpr int kRow = W::kPadded + 2;
  if (d < e.x.width)
    for (int n = 0; n < W::kStates; ++n) parts[(channels + d) * kRow + W::first_state() + n] = da[n];
  const int own = static_cast<int>(threadIdx.x);
  if (own >= W::kChannels || e.at.first + own >= e.x.width) return;
  float bias = 0, skip = 0;
  for (int i = own; i < kThreads * E::kVector; i += W::kChannels) bias += sums.bias[i], skip += sums.skip[i];
  float* to = parts + (channels + e.at.first + own) * kRow + W::kPadded;
  to[0] = bias, to[1] = skip;
}

template <class T, class W, int kVector>
__global__ void __launch_bounds__(kThreads, W::kTile == 16 ? 6 : 1) reverse_kernel(Inputs<T> x, Gradients<T> out) {
  using E = Elements<W, T, kVector>;
  __shared__ TileRows<W> rows;
  __shared__ PairSums<W> sums;
  __shared__ ParameterSums<E> parameter_sums;
  const BlockSpan at(x, W::kChannels);
  const E elements{x, at};
  const int d = at.first + W::channel();
  float a[W::kStates], e[W::kStates], da[W::kStates] = {};
  parameter_sums.clear();
  load_decays<W>(x, d, a);
  load_state<W>(x, out.d_end, at.line, d, e);
  for (int tile = (at.end - 1) / W::kTile; tile * W::kTile >= at.begin; --tile) {
    const int t0 = tile * W::kTile;
    float start[W::kStates] = {};
    if (d < x.width) load_row(out.starts + start_offset<W>(x, at, tile), start);
    __syncthreads();
    load_tile<W>(elements, out.dy, t0, rows);
    __syncthreads();
#pragma unroll
    for (int first = W::kTile - kHeld<W>; first >= 0; first -= kHeld<W>) {
      float before[W::kStates], h[kHeld<W>][W::kStates];
#pragma unroll
      for (int n = 0; n < W::kStates; ++n) before[n] = start[n];
      pass_over<W>(rows, first, a, before);
      recompute<W>(rows, first, a, before, h);
      reverse<W>(rows, sums, first, a, before, h, e, da);
    }
    __syncthreads();
    token_gradients<W>(elements, out, t0, rows, parameter_sums);
    store_pairs<W>(x, at, t0, sums, out.pair_parts);
  }
  if (out.d_start && at.begin == 0) store_state<W>(x, e, at.sequence, d, out.d_start);
  store_parts<W>(elements, da, parameter_sums, out.parts);
}

template <class T>
void backward(Stream stream, const Mamba1Scan& in, const ScanBackward& out) {
  const Inputs<T> x = inputs_of<T>(in);
  const Gradients<T> to{pointer<T>(out.dy),
                        pointer_or_null<float>(x.segments > 1 ? out.segment_ends.states : out.d_end),
                        pointer<float>(out.starts),
                        goal<T>(out.u),
                        goal<T>(out.dt),
                        goal<T>(out.z),
                        pointer_or_null<float>(out.d_start),
                        pointer<float>(out.pair_parts),
                        pointer<float>(out.parts)};
  with_widths(x.states, [&](auto at) {
    using W = Widths<decltype(at)::value>;
    in_pieces<4>(x.width,
                 [&](auto vector) { reverse_kernel<T, W, decltype(vector)::value><<<grid_of<W>(x), kThreads, 0, stream>>>(x, to); });
  });
  check_launch();
}

}  // namespace
}  // namespace scan

void selective_scan_backward(Stream stream, const Mamba1Scan& in, const ScanBackward& out) {
  scan::find_tile_starts(stream, in, out.segment_starts, out.starts);
  if (out.segment_ends.states) scan::find_segment_ends(stream, in, out.dy, out.d_end, out.segment_ends);
  dispatch_cuda(in.u.dtype(), [&](auto zero) { scan::backward<decltype(zero)>(stream, in, out); });
  scan::sum_parts(stream, in, out);
}

}  // namespace saccade::cuda
