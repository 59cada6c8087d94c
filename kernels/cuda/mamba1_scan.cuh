#pragma once
/// The selective scan through a tile of tokens. Device code only.
///
/// A block takes some channels of one sequence from tile to tile. First its threads make Δ and Δ u of every token and channel, in
/// float32 in shared memory; then the lanes of a channel, neighbours of a block of 32 / kLanes channels, carry the states through
/// the tile in registers; at the end the threads make what the tile gives. Padding (channels, states, tokens) has Δ = 0: it stays as
/// it is.
#include "kernels/cuda/lane_sums.cuh"
#include "kernels/cuda/mamba1_scan.h"
#include "kernels/cuda/tensor_core.cuh"

namespace saccade::cuda::scan {

constexpr int kThreads = 128;
constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

__device__ __forceinline__ float sigmoid(float x) { return 1 / (1 + __expf(-x)); }
__device__ __forceinline__ float softplus(float x) { return fmaxf(x, 0.0f) + log1pf(__expf(-fabsf(x))); }

template <class T>
struct Inputs {
  const T *u, *dt, *z, *b, *c;
  const float *skip, *bias, *a_log;
  int length, width, states;
};
template <class T>
Inputs<T> inputs_of(const Mamba1Scan& in) {
  return {pointer<T>(in.u),
          pointer<T>(in.dt),
          pointer<T>(in.z),
          pointer<T>(in.b),
          pointer<T>(in.c),
          pointer<float>(in.skip),
          pointer<float>(in.dt_bias),
          in.a_log ? pointer<float>(in.a_log) : nullptr,
          static_cast<int>(in.u.dim(1)),
          static_cast<int>(in.u.dim(2)),
          static_cast<int>(in.b.dim(2))};
}

/// f(widths) with the first of kScanWidths that holds the states, as a constant.
template <class F, size_t kAt = 0>
void with_widths(int64_t states, F&& f) {
  if constexpr (kAt + 1 < std::size(kScanWidths)) {
    if (states > kScanWidths[kAt].padded()) return with_widths<F, kAt + 1>(states, static_cast<F&&>(f));
  }
  f(std::integral_constant<size_t, kAt>{});
}

template <size_t kAt>
struct Widths {
  static constexpr ScanWidths w = kScanWidths[kAt];
  static constexpr int kLanes = w.lanes, kStates = w.states, kTile = w.tile, kChannels = w.channels(), kPadded = w.padded();
  static constexpr int kSpan = 32 / kLanes;                          ///< channels of a warp
  static constexpr int kRow = kChannels + kSpan;                     ///< of shared memory: groups of lanes in different banks
  static constexpr int kTogether = kLanes < kTile ? kLanes : kTile;  ///< tokens whose sums over states are formed at once

  static __device__ int group() { return static_cast<int>(threadIdx.x) % 32 / kSpan; }
  static __device__ int channel() { return static_cast<int>(threadIdx.x) / 32 * kSpan + static_cast<int>(threadIdx.x) % kSpan; }
  static __device__ int first_state() { return group() * kStates; }
  /// The token, of kTogether, whose sum lane_sums leaves in this lane.
  static __device__ int summed_token() { return group() / (kLanes / kTogether); }
};

template <class W>
using Rows = float[W::kTile][W::kRow];
template <class W>
struct alignas(16) Pairs {
  float b[W::kTile][W::kPadded], c[W::kTile][W::kPadded];
};

/// Where a block stands: channels [first, …) of a sequence.
struct Place {
  int first;
  int64_t sequence;
};

/// f(t, d, address of the element in [B, T, D], inside) for all tokens and channels of the tile, a thread always at one channel.
template <class W, class T, class F>
__device__ __forceinline__ void for_elements(const Inputs<T>& x, const Place& at, int t0, F&& f) {
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < W::kTile * W::kChannels; i += kThreads) {
    const int t = i / W::kChannels, d = i % W::kChannels;
    f(t, d, (at.sequence * x.length + t0 + t) * x.width + at.first + d, t0 + t < x.length && at.first + d < x.width);
  }
}

template <class W, class T>
__device__ __forceinline__ void load_pairs(const Inputs<T>& x, const Place& at, int t0, Pairs<W>& pairs) {
  for (int i = static_cast<int>(threadIdx.x); i < W::kTile * W::kPadded; i += kThreads) {
    const int t = i / W::kPadded, n = i % W::kPadded;
    const bool inside = t0 + t < x.length && n < x.states;
    const int64_t element = (at.sequence * x.length + t0 + t) * x.states + n;
    pairs.b[t][n] = inside ? to_float(x.b[element]) : 0.0f;
    pairs.c[t][n] = inside ? to_float(x.c[element]) : 0.0f;
  }
}

/// A log₂ e of the lane's states; zero for padding.
template <class W, class T>
__device__ __forceinline__ void load_decays(const Inputs<T>& x, int d, float (&a)[W::kStates]) {
#pragma unroll
  for (int n = 0; n < W::kStates; ++n) {
    const int state = W::first_state() + n;
    a[n] = d < x.width && state < x.states ? -expf(x.a_log[int64_t{d} * x.states + state]) * kLog2E : 0.0f;
  }
}

/// The lane's states in or out of [B, D, N]; zeros from a null pointer.
template <class W, class T>
__device__ __forceinline__ void load_state(const Inputs<T>& x, const float* from, int64_t sequence, int d, float (&h)[W::kStates]) {
#pragma unroll
  for (int n = 0; n < W::kStates; ++n) {
    const int state = W::first_state() + n;
    h[n] = from && d < x.width && state < x.states ? from[(sequence * x.width + d) * x.states + state] : 0.0f;
  }
}
template <class W, class T>
__device__ __forceinline__ void store_state(const Inputs<T>& x, const float (&h)[W::kStates], int64_t sequence, int d, float* to) {
#pragma unroll
  for (int n = 0; n < W::kStates; ++n) {
    const int state = W::first_state() + n;
    if (d < x.width && state < x.states) to[(sequence * x.width + d) * x.states + state] = h[n];
  }
}

/// kStates neighbours of a row of shared or device memory.
template <int kStates>
__device__ __forceinline__ void load_row(const float* from, float (&x)[kStates]) {
#pragma unroll
  for (int n = 0; n < kStates; n += 4) {
    const float4 four = *reinterpret_cast<const float4*>(from + n);
    x[n] = four.x, x[n + 1] = four.y, x[n + 2] = four.z, x[n + 3] = four.w;
  }
}

/// The lane's place in the states before every tile, [B, tiles, D, padded].
template <class W, class T>
__device__ __forceinline__ int64_t start_offset(const Inputs<T>& x, int64_t sequence, int tile, int d) {
  const int64_t tiles = (x.length + W::kTile - 1) / W::kTile;
  return ((sequence * tiles + tile) * x.width + d) * W::kPadded + W::first_state();
}

/// The states before every tile.
void scan_starts(Stream stream, const Mamba1Scan& in, const Tensor& starts);

}  // namespace saccade::cuda::scan
