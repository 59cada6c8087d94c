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
#include "kernels/cuda/values.cuh"

namespace saccade::cuda::scan {

constexpr int kThreads = 128;
constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

__device__ __forceinline__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
/// ln(1 + e) for e = e^{−|x|} as 2 artanh(e / (2 + e)), by its series as on the CPU.
__device__ __forceinline__ float softplus(float x) {
  const float e = __expf(-fabsf(x)), z = __fdividef(e, 2.0f + e), s = z * z;
  const float series = 2.0f + s * (2.0f / 3 + s * (2.0f / 5 + s * (2.0f / 7 + s * (2.0f / 9 + s * (2.0f / 11 + s * (2.0f / 13))))));
  return fmaxf(x, 0.0f) + z * series;
}

template <class T>
struct Inputs {
  const T *u, *dt, *z, *b, *c;
  const float *skip, *bias, *a_log;
  const T* shared;           ///< s [B, T] of one decay a token, else null
  const float* shared_bias;  ///< with it
  int length, width, states;

  /// Log decay of a token that all channels share.
  __device__ float shared_decay(int64_t row) const { return -expf(a_log[0]) * softplus(to_float(shared[row]) + shared_bias[0]); }
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
          pointer_or_null<float>(in.a_log),
          pointer_or_null<T>(in.shared_dt),
          pointer_or_null<float>(in.shared_bias),
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
  static constexpr int kRow = kChannels + (kSpan > 4 ? kSpan : 4);   ///< of shared memory: groups of lanes in different banks
  static constexpr int kTogether = kLanes < kTile ? kLanes : kTile;  ///< tokens whose sums over states are formed at once

  static __device__ int group() { return static_cast<int>(threadIdx.x) % 32 / kSpan; }
  static __device__ int channel() { return static_cast<int>(threadIdx.x) / 32 * kSpan + static_cast<int>(threadIdx.x) % kSpan; }
  static __device__ int first_state() { return group() * kStates; }
  /// The token, of kTogether, whose sum lane_sums leaves in this lane.
  static __device__ int summed_token() { return group() / (kLanes / kTogether); }
};

template <class W>
struct alignas(16) Rows {
  float row[W::kTile][W::kRow];
  __device__ float (&operator[](int t))[W::kRow] { return row[t]; }
  __device__ const float (&operator[](int t) const)[W::kRow] { return row[t]; }
};
template <class W>
struct alignas(16) Pairs {
  float b[W::kTile][W::kPadded], c[W::kTile][W::kPadded];
};

/// Where a block stands: channels [first, …) of a sequence.
struct Place {
  int first;
  int64_t sequence;
};

/// kVector neighbours in memory.
template <class T, int kVector>
struct alignas(kVector * sizeof(T)) Piece {
  T v[kVector];
};

/// The tokens and channels of a tile, kVector channels a piece; a thread always has the same channels.
template <class W, class T, int kVectorSize>
struct Elements {
  static constexpr int kVector = kVectorSize, kAcross = W::kChannels / kVector, kAll = W::kTile * kAcross;
  static constexpr int kCount = (kAll + kThreads - 1) / kThreads;  ///< pieces of a thread
  using P = Piece<T, kVector>;

  const Inputs<T>& x;
  const Place& at;

  static __device__ int token(int i) { return (static_cast<int>(threadIdx.x) + i * kThreads) / kAcross; }
  static __device__ int channel() { return static_cast<int>(threadIdx.x) % kAcross * kVector; }
  __device__ bool inside(int t0, int i) const { return token(i) < W::kTile && t0 + token(i) < x.length && at.first + channel() < x.width; }
  /// Of the piece's first element in [B, T, D].
  __device__ int64_t element(int t0, int i) const { return (at.sequence * x.length + t0 + token(i)) * x.width + at.first + channel(); }
  __device__ void fetch(const T* from, int t0, P (&pieces)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      if (inside(t0, i)) pieces[i] = *reinterpret_cast<const P*>(from + element(t0, i));
  }
  /// The thread's channels of a parameter [D]; zero for padding.
  __device__ void parameter(const float* from, float (&values)[kVector]) const {
#pragma unroll
    for (int j = 0; j < kVector; ++j) values[j] = at.first + channel() + j < x.width ? from[at.first + channel() + j] : 0.0f;
  }
  static __device__ void put(float (&row)[W::kRow], const float (&values)[kVector]) {
    if constexpr (kVector == 4)
      *reinterpret_cast<float4*>(row + channel()) = make_float4(values[0], values[1], values[2], values[3]);
    else
      row[channel()] = values[0];
  }
};

/// f(vector size as a constant): four where rows of D elements lie so.
template <class F>
void with_vector(int64_t width, F&& f) {
  if (width % 4 == 0)
    f(std::integral_constant<int, 4>{});
  else
    f(std::integral_constant<int, 1>{});
}

/// Δ, Δ u and the drive of the decay (Δ, or the log decay that all channels share) of a piece.
template <class E>
struct Steps {
  float step[E::kVector], input[E::kVector], drive[E::kVector];

  __device__ Steps(const E& e, int t0, int i, const typename E::P& u, const typename E::P& dt, const float (&bias)[E::kVector]) {
    const bool inside = e.inside(t0, i);
    float shared = 0;
    if (inside && e.x.shared) shared = e.x.shared_decay(e.at.sequence * e.x.length + t0 + E::token(i));
#pragma unroll
    for (int j = 0; j < E::kVector; ++j) {
      step[j] = inside ? softplus(to_float(dt.v[j]) + bias[j]) : 0.0f;
      input[j] = inside ? step[j] * to_float(u.v[j]) : 0.0f;
      drive[j] = e.x.shared ? shared : step[j];
    }
  }
};

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

/// What the drives of a token are multiplied with in the exponents of 2, for each of the lane's states: A log₂ e where the drive is Δ,
/// log₂ e where it is a log decay. Zero for padding and without decay.
template <class W, class T>
__device__ __forceinline__ void load_decays(const Inputs<T>& x, int d, float (&a)[W::kStates]) {
#pragma unroll
  for (int n = 0; n < W::kStates; ++n) {
    const int state = W::first_state() + n;
    const bool inside = x.a_log && d < x.width && state < x.states;
    a[n] = inside ? (x.shared ? 1.0f : -expf(x.a_log[int64_t{d} * x.states + state])) * kLog2E : 0.0f;
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

template <int kStates>
__device__ __forceinline__ void store_row(const float (&x)[kStates], float* to) {
#pragma unroll
  for (int n = 0; n < kStates; n += 4) *reinterpret_cast<float4*>(to + n) = make_float4(x[n], x[n + 1], x[n + 2], x[n + 3]);
}

/// The lane's place in the states before every tile, [B, tiles, D, padded].
template <class W, class T>
__device__ __forceinline__ int64_t start_offset(const Inputs<T>& x, int64_t sequence, int tile, int d) {
  const int64_t tiles = (x.length + W::kTile - 1) / W::kTile;
  return ((sequence * tiles + tile) * x.width + d) * W::kPadded + W::first_state();
}

/// Gradients that sum over channels, tokens or sequences, from the scratch that the scan back has filled.
void sum_parts(Stream stream, const Mamba1Scan& in, const ScanBackward& out);

/// The states before every tile.
void scan_starts(Stream stream, const Mamba1Scan& in, const Tensor& starts);

}  // namespace saccade::cuda::scan
