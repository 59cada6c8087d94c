#pragma once
/// The selective scan through a tile of tokens. Device code only.
///
/// A block goes through the tiles of a segment of one sequence for some channels. First its threads compute Δ and Δ u of every token and
/// channel, in float32 in shared memory; then the lanes of a channel, in a warp of 32 / kLanes channels, carry the states through the tile
/// in registers; then the threads compute the tile's outputs. Padding (channels, states, tokens) has Δ = 0, so its states do not change.
#include "kernels/cuda/device/lane_sums.cuh"
#include "kernels/cuda/device/tensor_core.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/ops/mamba1/mamba1_scan_cuda.h"

namespace saccade::cuda::scan {

constexpr int kThreads = 128;
constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

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
  int batch, length, width, states;
  int segments, segment_tokens;
};
template <class T>
Inputs<T> inputs_of(const Mamba1Scan& in) {
  const ScanSegments segments = scan_segments(in);
  return {pointer<T>(in.u),
          pointer<T>(in.dt),
          pointer<T>(in.z),
          pointer<T>(in.b),
          pointer<T>(in.c),
          pointer<float>(in.skip),
          pointer<float>(in.dt_bias),
          pointer_or_null<float>(in.a_log),
          static_cast<int>(in.u.dim(0)),
          static_cast<int>(in.u.dim(1)),
          static_cast<int>(in.u.dim(2)),
          static_cast<int>(in.b.dim(2)),
          static_cast<int>(segments.count),
          static_cast<int>(segments.tokens)};
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
struct alignas(16) Columns {
  float row[W::kTile][W::kPadded];
  __device__ const float* operator[](int t) const { return row[t] + W::first_state(); }  ///< of the lane
};

/// Position of a block: channels [first, …) of tokens [begin, end) of a sequence; `line` counts the segments of all sequences.
struct BlockSpan {
  int first, begin, end;
  int64_t line, sequence;

  template <class T>
  __device__ BlockSpan(const Inputs<T>& x, int channels)
      : first(static_cast<int>(blockIdx.x) * channels),
        begin(static_cast<int>(blockIdx.y) % x.segments * x.segment_tokens),
        end(min(x.length, begin + x.segment_tokens)),
        line(blockIdx.y),
        sequence(static_cast<int>(blockIdx.y) / x.segments) {}
};
template <class W, class T>
dim3 grid_of(const Inputs<T>& x) {
  return {blocks_for(x.width, W::kChannels), static_cast<unsigned>(x.batch * x.segments)};
}

/// The tokens and channels of a tile, kVector channels a piece; a thread always has the same channels.
template <class W, class T, int kVectorSize>
struct Elements {
  static constexpr int kVector = kVectorSize, kAcross = W::kChannels / kVector, kAll = W::kTile * kAcross;
  static constexpr int kCount = (kAll + kThreads - 1) / kThreads;  ///< pieces of a thread
  using P = Piece<kVector, T>;
  using V = Values<kVector>;

  const Inputs<T>& x;
  const BlockSpan& at;

  static __device__ int token(int i) { return (static_cast<int>(threadIdx.x) + i * kThreads) / kAcross; }
  static __device__ int channel() { return static_cast<int>(threadIdx.x) % kAcross * kVector; }
  __device__ bool inside(int t0, int i) const { return token(i) < W::kTile && t0 + token(i) < x.length && at.first + channel() < x.width; }
  /// Of the piece's first element in [B, T, D].
  __device__ int64_t element(int t0, int i) const {
    return (at.sequence * x.length + t0) * x.width + at.first + (token(i) * x.width + channel());
  }
  __device__ void fetch(const T* from, int t0, P (&pieces)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) pieces[i] = inside(t0, i) ? load_piece<kVector>(from + element(t0, i)) : P{};
  }
  /// The thread's channels of a parameter [D]; zero for padding.
  __device__ V parameter(const float* from) const {
    return at.first + channel() < x.width ? load_values<kVector>(from + at.first + channel()) : V();
  }
  /// Δ of a piece, zero for padding.
  __device__ V steps(int t0, int i, const P& dt, const V& bias) const {
    V made;
    if (inside(t0, i))
#pragma unroll
      for (int j = 0; j < kVector; ++j) made.v[j] = softplus(to_float(dt.v[j]) + bias.v[j]);
    return made;
  }
  /// Δ u
  __device__ V drives(const V& steps, const P& u) const {
    V made;
#pragma unroll
    for (int j = 0; j < kVector; ++j) made.v[j] = steps.v[j] * to_float(u.v[j]);
    return made;
  }
  /// dỹ = dy silu(z)
  __device__ V gated(const P& dy, const P& z) const {
    V made;
#pragma unroll
    for (int j = 0; j < kVector; ++j) made.v[j] = to_float(dy.v[j]) * silu(to_float(z.v[j]));
    return made;
  }
  static __device__ void put(Rows<W>& rows, int i, const V& values) {
    if (token(i) < W::kTile) store_values(rows[token(i)] + channel(), values);
  }
  static __device__ V get(const Rows<W>& rows, int i) { return load_values<kVector>(rows[token(i)] + channel()); }
};

/// A thread's part of the load of a tile of B or C.
template <class W, class T>
struct ColumnPieces {
  static constexpr int kAll = W::kTile * W::kPadded, kCount = (kAll + kThreads - 1) / kThreads;
  T v[kCount];

  static __device__ int place(int i) { return static_cast<int>(threadIdx.x) + i * kThreads; }
  __device__ void fetch(const Inputs<T>& x, const T* from, const BlockSpan& at, int t0) {
    from += (at.sequence * x.length + t0) * x.states;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int t = place(i) / W::kPadded, n = place(i) % W::kPadded;
      v[i] = t0 + t < x.length && n < x.states ? from[t * x.states + n] : T{};
    }
  }
  __device__ void put(Columns<W>& columns) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      if (place(i) < kAll) columns.row[place(i) / W::kPadded][place(i) % W::kPadded] = to_float(v[i]);
  }
};
template <class W, class T>
__device__ __forceinline__ void load_columns(const Inputs<T>& x, const T* from, const BlockSpan& at, int t0, Columns<W>& columns) {
  ColumnPieces<W, T> pieces;
  pieces.fetch(x, from, at, t0);
  pieces.put(columns);
}

/// A log₂ e of the lane's states, zero for padding.
template <class W, class T>
__device__ __forceinline__ void load_decays(const Inputs<T>& x, int d, float (&a)[W::kStates]) {
#pragma unroll
  for (int n = 0; n < W::kStates; ++n) {
    const int state = W::first_state() + n;
    a[n] = d < x.width && state < x.states ? -expf(x.a_log[int64_t{d} * x.states + state]) * kLog2E : 0.0f;
  }
}

/// Loads or stores the lane's states in one row of [rows, D, N]; zeros from a null pointer.
template <class W, class T>
__device__ __forceinline__ void load_state(const Inputs<T>& x, const float* from, int64_t line, int d, float (&h)[W::kStates]) {
#pragma unroll
  for (int n = 0; n < W::kStates; ++n) {
    const int state = W::first_state() + n;
    h[n] = from && d < x.width && state < x.states ? from[(line * x.width + d) * x.states + state] : 0.0f;
  }
}
template <class W, class T>
__device__ __forceinline__ void store_state(const Inputs<T>& x, const float (&h)[W::kStates], int64_t line, int d, float* to) {
#pragma unroll
  for (int n = 0; n < W::kStates; ++n) {
    const int state = W::first_state() + n;
    if (d < x.width && state < x.states) to[(line * x.width + d) * x.states + state] = h[n];
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

/// The lane's index in the states before every tile, [B, tiles, D, padded].
template <class W, class T>
__device__ __forceinline__ int64_t start_offset(const Inputs<T>& x, const BlockSpan& at, int tile) {
  const int64_t tiles = (x.length + W::kTile - 1) / W::kTile;
  return ((at.sequence * tiles + tile) * x.width + at.first) * W::kPadded + W::channel() * W::kPadded + W::first_state();
}

/// The states before every tile; `segment_starts` is empty where there is one segment.
void find_tile_starts(Stream stream, const Mamba1Scan& in, const Tensor& segment_starts, const Tensor& to);

/// From the end state of every segment started at zeros to its true start state: segment after segment from `start` (empty: zeros), in the
/// order of time or, with `back`, in reverse.
void carry_on(Stream stream, const Mamba1Scan& in, const Tensor& start, const SegmentStates& segments, bool back);
/// The gradients of the states at the segments' ends.
void find_segment_ends(Stream stream, const Mamba1Scan& in, const Tensor& dy, const Tensor& d_end, const SegmentStates& to);

/// Gradients that sum over channels, tokens or sequences, from the workspace that the backward scan has filled.
void sum_parts(Stream stream, const Mamba1Scan& in, const ScanBackward& out);

}  // namespace saccade::cuda::scan
