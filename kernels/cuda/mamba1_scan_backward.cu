#include "kernels/cuda/mamba1_scan.cuh"

namespace saccade::cuda {
namespace scan {
namespace {

template <class T>
struct Gradients {
  const T* dy;
  const float *d_end, *starts;
  Goal<T> u, dt, z;
  float *d_start, *pair_parts, *shared_parts, *parts;
};

template <class W>
struct TileRows {
  Rows<W> step, drive, input, dy;  ///< Δ, what drives the decay, Δ u and dỹ
  Rows<W> sum, d_input, d_drive;   ///< Σ_n C h, Σ_n E B and the gradient of the drive times log₂ e
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
      const float s = rows.drive[t][channel], su = rows.input[t][channel];
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
      const float s = rows.drive[t][channel], su = rows.input[t][channel], dy = rows.dy[t][channel];
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
    rows.d_drive[t0 + W::summed_token()][channel] = steps[0];
  }
}

/// What a thread has of the tile's elements.
template <class E>
struct Fetched {
  typename E::P u[E::kCount], dt[E::kCount], z[E::kCount], dy[E::kCount];
};

template <class W, class E, class T>
__device__ __forceinline__ void load_tile(const E& e, const T* dy, int t0, Fetched<E>& f, TileRows<W>& rows) {
  float bias[E::kVector];
  e.parameter(e.x.bias, bias);
  e.fetch(e.x.u, t0, f.u);
  e.fetch(e.x.dt, t0, f.dt);
  e.fetch(e.x.z, t0, f.z);
  e.fetch(dy, t0, f.dy);
#pragma unroll
  for (int i = 0; i < E::kCount; ++i) {
    if (E::token(i) >= W::kTile) break;
    const Steps<E> steps(e, t0, i, f.u[i], f.dt[i], bias);
    E::put(rows.step[E::token(i)], steps.step);
    E::put(rows.drive[E::token(i)], steps.drive);
    E::put(rows.input[E::token(i)], steps.input);
    const bool inside = e.inside(t0, i);
    float gated[E::kVector];
#pragma unroll
    for (int j = 0; j < E::kVector; ++j) {
      const float z = to_float(f.z[i].v[j]);
      gated[j] = inside ? to_float(f.dy[i].v[j]) * z * sigmoid(z) : 0.0f;
    }
    E::put(rows.dy[E::token(i)], gated);
  }
}

/// Writes or adds kVector neighbours.
template <class T, int kVector>
__device__ __forceinline__ void put_piece(const Goal<T>& to, int64_t element, const float (&values)[kVector]) {
  if (!to.to) return;
  auto* at = reinterpret_cast<Piece<T, kVector>*>(to.to + element);
  Piece<T, kVector> made;
  if (to.add) made = *at;
#pragma unroll
  for (int j = 0; j < kVector; ++j) made.v[j] = from_float<T>(values[j] + (to.add ? to_float(made.v[j]) : 0.0f));
  *at = made;
}

/// Sums over tokens that a thread keeps for its channels, in shared memory for want of registers.
template <class E>
struct ParameterSums {
  float bias[kThreads * E::kVector], skip[kThreads * E::kVector];

  static __device__ int at(int j) { return static_cast<int>(threadIdx.x) * E::kVector + j; }
  __device__ void clear() {
    for (int j = 0; j < E::kVector; ++j) bias[at(j)] = skip[at(j)] = 0;
  }
};

/// du, dΔraw and dz of the tile.
template <class W, class E, class T>
__device__ __forceinline__ void token_gradients(const E& e, const Gradients<T>& out, int t0, const Fetched<E>& f, const TileRows<W>& rows,
                                                ParameterSums<E>& sums) {
  float bias[E::kVector], skip[E::kVector];
  e.parameter(e.x.bias, bias);
  e.parameter(e.x.skip, skip);
#pragma unroll
  for (int i = 0; i < E::kCount; ++i) {
    if (!e.inside(t0, i)) continue;
    float du[E::kVector], dz[E::kVector], d_raw[E::kVector];
#pragma unroll
    for (int j = 0; j < E::kVector; ++j) {
      const int t = E::token(i), c = E::channel() + j;
      const float u = to_float(f.u[i].v[j]), z = to_float(f.z[i].v[j]), s = sigmoid(z), gated = rows.dy[t][c];
      du[j] = skip[j] * gated + rows.step[t][c] * rows.d_input[t][c];
      dz[j] = to_float(f.dy[i].v[j]) * (rows.sum[t][c] + skip[j] * u) * s * (1 + z * (1 - s));
      d_raw[j] = (u * rows.d_input[t][c] + (e.x.shared ? 0.0f : kLn2 * rows.d_drive[t][c])) * sigmoid(to_float(f.dt[i].v[j]) + bias[j]);
      sums.bias[sums.at(j)] += d_raw[j];
      sums.skip[sums.at(j)] += gated * u;
    }
    const int64_t element = e.element(t0, i);
    put_piece(out.u, element, du);
    put_piece(out.z, element, dz);
    put_piece(out.dt, element, d_raw);
  }
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

/// What the block's channels add to the gradient of a log decay that all share, parts [blocks, B, T].
template <class W, class T>
__device__ __forceinline__ void store_shared(const Inputs<T>& x, const Place& at, int t0, const TileRows<W>& rows, float* parts) {
  const int t = static_cast<int>(threadIdx.x);
  if (t >= W::kTile || t0 + t >= x.length) return;
  float sum = 0;
  for (int c = 0; c < W::kChannels; ++c) sum += rows.d_drive[t][c];
  parts[(blockIdx.x * int64_t{gridDim.y} + at.sequence) * x.length + t0 + t] = kLn2 * sum;
}

/// Parts [B, D, padded + 2]: dA, then dbias and dD, whose sums lie in the threads of a channel.
template <class W, class E>
__device__ __forceinline__ void store_parts(const E& e, const float (&da)[W::kStates], const ParameterSums<E>& sums, float* parts) {
  __syncthreads();
  const int64_t channels = e.at.sequence * e.x.width, d = e.at.first + W::channel();
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
__global__ void __launch_bounds__(kThreads, W::kTile == 16 ? 4 : 1) reverse_kernel(Inputs<T> x, Gradients<T> out) {
  using E = Elements<W, T, kVector>;
  __shared__ TileRows<W> rows;
  __shared__ Pairs<W> pairs;
  __shared__ PairSums<W> sums;
  __shared__ ParameterSums<E> parameter_sums;
  const Place at{static_cast<int>(blockIdx.x) * W::kChannels, blockIdx.y};
  const E elements{x, at};
  const int d = at.first + W::channel();
  float a[W::kStates], e[W::kStates], da[W::kStates] = {};
  parameter_sums.clear();
  load_decays<W>(x, d, a);
  load_state<W>(x, out.d_end, at.sequence, d, e);
  for (int tile = (x.length - 1) / W::kTile; tile >= 0; --tile) {
    const int t0 = tile * W::kTile;
    float start[W::kStates] = {}, h[W::kTile][W::kStates];
    Fetched<E> fetched;
    if (d < x.width) load_row(out.starts + start_offset<W>(x, at.sequence, tile, d), start);
    __syncthreads();
    load_tile<W>(elements, out.dy, t0, fetched, rows);
    load_pairs<W>(x, at, t0, pairs);
    __syncthreads();
    recompute<W>(rows, pairs, a, start, h);
    reverse<W>(rows, pairs, sums, a, start, h, e, da);
    __syncthreads();
    token_gradients<W>(elements, out, t0, fetched, rows, parameter_sums);
    store_pairs<W>(x, at, t0, sums, out.pair_parts);
    if (x.shared) store_shared<W>(x, at, t0, rows, out.shared_parts);
  }
  if (out.d_start) store_state<W>(x, e, at.sequence, d, out.d_start);
  store_parts<W>(elements, da, parameter_sums, out.parts);
}

template <class T>
void backward(Stream stream, const Mamba1Scan& in, const ScanBackward& out) {
  const int64_t batch = in.u.dim(0), width = in.u.dim(2);
  const Inputs<T> x = inputs_of<T>(in);
  const Gradients<T> to{pointer<T>(out.dy),
                        pointer_or_null<float>(out.d_end),
                        pointer_or_null<float>(out.starts),
                        goal<T>(out.u),
                        goal<T>(out.dt),
                        goal<T>(out.z),
                        pointer_or_null<float>(out.d_start),
                        pointer_or_null<float>(out.pair_parts),
                        pointer_or_null<float>(out.shared_parts),
                        pointer_or_null<float>(out.parts)};
  with_widths(x.states, [&](auto at) {
    using W = Widths<decltype(at)::value>;
    const dim3 grid(blocks_for(width, W::kChannels), static_cast<unsigned>(batch));
    with_vector(width, [&](auto vector) { reverse_kernel<T, W, decltype(vector)::value><<<grid, kThreads, 0, stream>>>(x, to); });
  });
  check_launch();
}

}  // namespace
}  // namespace scan

void selective_scan_backward(Stream stream, const Mamba1Scan& in, const ScanBackward& out) {
  scan::scan_starts(stream, in, out.starts);
  dispatch_cuda(in.u.dtype(), [&](auto zero) { scan::backward<decltype(zero)>(stream, in, out); });
  scan::sum_parts(stream, in, out);
}

}  // namespace saccade::cuda
