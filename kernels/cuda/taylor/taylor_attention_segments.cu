// Taylor attention between segments, d 16: the features' sums Σ φ(k) [v | 1] of every segment, their running sums (behind a carried state
// from it on), and what queries read from them; backward the same from behind with Σ φ(q) [dn | d_denominator]. Sums are float32; products
// see tile_sums.cuh.
#include "kernels/cuda/device/tile_sums.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/cuda/taylor/taylor_attention.cuh"

namespace saccade::cuda::taylor {
namespace {

using namespace tile_sums;

constexpr int kD = 16, kFeatures = 1 + kD + kD * (kD + 1) / 2, kFeatureTiles = (kFeatures + kTile - 1) / kTile;
constexpr float kLinear = 0.5f, kSquare = 0.1767766953f, kProduct = 0.25f;  // d^{−1/4}, 1 / √(2d), 1 / √d

/// φ_f(x) = factor x_i x_j, where x_16 = 1.
struct Feature {
  int i, j;
  float factor;
  __device__ __forceinline__ float of(const float* x) const { return factor * x[i] * x[j]; }
};
__device__ __forceinline__ Feature feature(int f) {
  if (f == 0) return {kD, kD, 1.0f};
  if (f <= kD) return {f - 1, kD, kLinear};
  int i = 0, rest = f - 1 - kD;
  for (; rest >= kD - i; ++i) rest -= kD - i;
  return {i, i + rest, rest == 0 ? kSquare : kProduct};
}
/// Which feature is x_i²; those of x_i x_j for j > i follow.
__device__ __forceinline__ int square_of(int i) { return 1 + kD + i * kD - i * (i - 1) / 2; }

/// Rows of q or k with a 1 behind.
using Tokens = float[kTile][kD + 1];
template <class T>
__device__ __forceinline__ void load_tokens(Tokens& to, const Heads<T>& x, const T* rows, int head, int first) {
  const T* from = rows + x.key(head, first);
  const int64_t stride = int64_t{x.heads} * kD;
  for (int item = static_cast<int>(threadIdx.x); item < kTile * (kD + 1); item += kThreads) {
    const int row = item / (kD + 1), n = item % (kD + 1);
    float value = 0;
    if (first + row < x.length) value = n == kD ? 1.0f : to_float(from[row * stride + n]);
    to[row][n] = value;
  }
}

/// [v | 1] of a head; zeros behind the last token.
template <class T>
struct ValueRows {
  const T* v;
  int64_t stride;
  int length;
  __device__ __forceinline__ ValueRows(const Heads<T>& x, const Gradients<T>&, int head)
      : v(x.v + x.value(head, 0)), stride(int64_t{x.heads} * x.values), length(x.length) {}
  __device__ __forceinline__ float at(int t, int w) const { return t < length ? to_float(v[t * stride + w]) : 0.0f; }
  __device__ __forceinline__ float last(int t) const { return t < length ? 1.0f : 0.0f; }
};

/// [dn | d_denominator] of a head; zeros behind the last token. dn is there for bf16, else made of d_o.
template <class T>
struct OutputGradients {
  static constexpr bool kMade = std::is_same_v<T, bf16>;
  const T* rows;
  const float *denominator, *d_denominator;
  int64_t stride;
  int length;
  __device__ __forceinline__ OutputGradients(const Heads<T>& x, const Gradients<T>& g, int head)
      : rows((kMade ? g.dn : g.d_o) + x.value(head, 0)),
        denominator(g.denominator + x.line(head)),
        d_denominator(g.d_denominator + x.line(head)),
        stride(int64_t{x.heads} * x.values),
        length(x.length) {}
  __device__ __forceinline__ float at(int t, int w) const {
    if (t >= length) return 0.0f;
    const float value = to_float(rows[t * stride + w]);
    return kMade ? value : value / (denominator[t] + kEpsilon);
  }
  __device__ __forceinline__ float last(int t) const { return t < length ? d_denominator[t] : 0.0f; }
};

/// A tile of 64 tokens of a head; of those of whole segments before the last boundary (keys, never with a carried state) or behind the
/// first (queries).
struct HeadTile {
  int head, first, boundary;
};
enum class Side { queries, keys };
template <class T>
__host__ __device__ __forceinline__ int tiles_of(const Heads<T>& x, Side side) {
  return side == Side::keys ? x.boundaries() * (x.segment / kTile) : (x.length - x.first_past() + kTile - 1) / kTile;
}
template <class T>
__device__ __forceinline__ HeadTile place_of(const Heads<T>& x, Side side) {
  const int tiles = tiles_of(x, side), tile = static_cast<int>(blockIdx.x) % tiles * kTile;
  return {static_cast<int>(blockIdx.x) / tiles, side == Side::keys ? tile : x.first_past() + tile, tile / x.segment};
}

/// Of a head at a boundary: [F, V + 1].
template <int V, class T>
__device__ __forceinline__ int64_t state_at(const Heads<T>& x, int head, int boundary) {
  return (int64_t{head} * x.boundaries() + boundary) * (kFeatures * (V + 1));
}

/// Σ φ(row) [y | last] over the segment before every boundary (keys) or behind it (queries); with a carried state over every segment
/// (keys). A block owns 64 features.
template <int V, class Rows, class T>
__global__ void __launch_bounds__(kThreads) segment_sums_kernel(Heads<T> x, Gradients<T> g, Side side, const T* rows, float* sums) {
  __shared__ alignas(16) Operands workspace;
  __shared__ Tokens tokens;
  __shared__ float lasts[kTile];
  const int block = static_cast<int>(blockIdx.x), f0 = block % kFeatureTiles * kTile, boundary = block / kFeatureTiles % x.boundaries(),
            head = block / kFeatureTiles / x.boundaries(), own = static_cast<int>(threadIdx.x) % kTile;
  const int begin = (side == Side::keys ? boundary : boundary + 1) * x.segment, end = x.segment_end(begin);
  const Feature mine = feature(min(f0 + own, kFeatures - 1));
  const Rows y(x, g, head);
  Sums<T> c;
  float last = 0;
  for (int first = begin; first < end; first += kTile) {
    __syncthreads();
    load_tokens(tokens, x, rows, head, first);
    if (threadIdx.x < kTile) lasts[own] = y.last(first + own);
    for (int step = 0; step < kTile; step += kDepth) {
      __syncthreads();
      load<T, Lanes::tile>(workspace.a, [&](int, int k) { return mine.of(tokens[step + k]); });
      load<T, Lanes::tile>(workspace.b, [&](int w, int k) { return w < V ? y.at(first + step + k, w) : 0.0f; });
      __syncthreads();
      c.add(workspace);
      if (threadIdx.x < kTile)
#pragma unroll
        for (int k = 0; k < kDepth; ++k) last = fmaf(workspace.a[k][own], lasts[step + k], last);
    }
  }
  float* to = sums + state_at<V>(x, head, boundary);
  c.for_own([&](int f, int w, float value) {
    if (f0 + f < kFeatures && w < V) to[(f0 + f) * (V + 1) + w] = value;
  });
  if (threadIdx.x < kTile && f0 + own < kFeatures) to[(f0 + own) * (V + 1) + V] = last;
}

/// use(value, stored) for `count` elements that lie `step` apart, in order; some are read ahead.
template <class Use>
__device__ __forceinline__ void for_stored(float* at, int64_t step, int count, const Use& use) {
  constexpr int kAhead = 8;
  for (int first = 0; first < count; first += kAhead) {
    float values[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      if (first + i < count) values[i] = at[(first + i) * step];
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      if (first + i < count) use(values[i], at[(first + i) * step]);
  }
}

/// Sums of segments become those of all segments before (keys) or behind (queries) a boundary, in order.
__global__ void __launch_bounds__(kThreads) running_sums_kernel(float* sums, Side side, int boundaries, int size, int64_t items) {
  const int64_t item = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (item >= items) return;
  const int64_t begin = (item / size * boundaries + (side == Side::keys ? 0 : boundaries - 1)) * size + item % size;
  float sum = 0;
  for_stored(sums + begin, side == Side::keys ? size : -size, boundaries, [&](float value, float& stored) { stored = sum += value; });
}

/// Sums of segments become the states before them, from the carried states [B H, size] on; those become the states behind the last token.
/// A thread owns an element of a carried state.
__global__ void __launch_bounds__(kThreads) carried_sums_kernel(float* sums, float* states, int segments, int size, int64_t items) {
  const int64_t item = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (item >= items) return;
  float sum = states[item];
  for_stored(sums + item / size * segments * size + item % size, size, segments, [&](float value, float& stored) {
    stored = sum;
    sum += value;
  });
  states[item] = sum;
}

/// c += φ(tokens) state without its last column; that one's product with the thread's token (of the first 64 threads).
template <int V, class T>
__device__ __forceinline__ float read_state(Sums<T>& c, Operands& workspace, const Tokens& tokens, const float* state) {
  __shared__ Feature features[kFeatures];
  if (threadIdx.x < kFeatures) features[threadIdx.x] = feature(static_cast<int>(threadIdx.x));
  float last = 0;
  for (int f = 0; f < kFeatures; f += kDepth) {
    const float* part = state + f * (V + 1);
    const int depth = min(kDepth, kFeatures - f);
    __syncthreads();
    load<T, Lanes::tile>(workspace.a, [&](int i, int k) { return k < depth ? features[f + k].of(tokens[i]) : 0.0f; });
    load<T, Lanes::tile>(workspace.b, [&](int w, int k) { return w < V && k < depth ? part[k * (V + 1) + w] : 0.0f; });
    __syncthreads();
    c.add(workspace);
    if (threadIdx.x < kTile)
      for (int k = 0; k < depth; ++k) last = fmaf(workspace.a[k][threadIdx.x], part[k * (V + 1) + V], last);
  }
  return last;
}

/// o = (o · denominator + φ(q) S) / (denominator + φ(q) z), from the pairs' o and denominator. A block owns 64 queries.
template <int V, class T>
__global__ void __launch_bounds__(kThreads) read_past_kernel(Heads<T> x, const float* past, T* o, float* denominator) {
  __shared__ alignas(16) Operands workspace;
  __shared__ Tokens tokens;
  __shared__ float pairs[kTile], inverse[kTile];
  const auto [head, first, boundary] = place_of(x, Side::queries);
  load_tokens(tokens, x, x.q, head, first);
  Sums<T> c;
  const float before = read_state<V>(c, workspace, tokens, past + state_at<V>(x, head, boundary));
  if (threadIdx.x < kTile && first + static_cast<int>(threadIdx.x) < x.length) {
    float& sum = denominator[x.line(head) + first + threadIdx.x];
    pairs[threadIdx.x] = sum;
    sum += before;
    inverse[threadIdx.x] = 1.0f / (sum + kEpsilon);
  }
  __syncthreads();
  const int64_t rows = x.value(head, first), row = int64_t{x.heads} * V;
  const int count = min(kTile, x.length - first);
  c.for_own([&](int i, int w, float value) {
    if (i >= count || w >= V) return;
    T& to = o[rows + i * row + w];
    to = from_float<T>(fmaf(to_float(to), pairs[i], value) * inverse[i]);
  });
}

/// dv += φ(k) dS. A block owns 64 keys.
template <int V, class T>
__global__ void __launch_bounds__(kThreads) value_gradients_kernel(Heads<T> x, const float* future, T* dv) {
  __shared__ alignas(16) Operands workspace;
  __shared__ Tokens tokens;
  const auto [head, first, boundary] = place_of(x, Side::keys);
  load_tokens(tokens, x, x.k, head, first);
  Sums<T> c;
  read_state<V>(c, workspace, tokens, future + state_at<V>(x, head, boundary));
  const int64_t rows = x.value(head, first), row = int64_t{x.heads} * V;
  c.for_own([&](int j, int w, float value) {
    if (w >= V) return;
    T& to = dv[rows + j * row + w];
    to = from_float<T>(to_float(to) + value);
  });
}

/// The gradient of a token's x_4g … x_4g+3 through features f0 … f0 + 63, whose gradients are d_phi.
__device__ __forceinline__ void add_feature_gradients(Values<4>& dx, const float* x, const float* d_phi, int group, int f0) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int n = 4 * group + i, diagonal = square_of(n);
#pragma unroll
    for (int j = 0; j <= kD; ++j) {
      const int f = (j == kD ? 1 + n : j < n ? square_of(j) + n - j : diagonal + j - n) - f0;
      const float factor = j == kD ? kLinear : j == n ? 2 * kSquare : kProduct;
      if (f >= 0 && f < kTile) dx.v[i] = fmaf(factor * x[j], d_phi[f], dx.v[i]);
    }
  }
}

/// d_row += φ'(row)ᵀ (state [y | last]): of queries through the past, of keys through the future. A block owns 64 tokens.
template <int V, class Rows, class T>
__global__ void __launch_bounds__(kThreads, 2)
    feature_gradients_kernel(Heads<T> x, Gradients<T> g, Side side, const T* rows, const float* states, T* to) {
  __shared__ alignas(16) Operands workspace;
  __shared__ Tokens tokens;
  __shared__ float lasts[kTile], d_phi[kTile][kTile + 1];
  const HeadTile place = place_of(x, side);
  const int head = place.head, first = place.first, own = static_cast<int>(threadIdx.x) % kTile,
            group = static_cast<int>(threadIdx.x) / kTile;
  const float* state = states + state_at<V>(x, head, place.boundary);
  const Rows y(x, g, head);
  load_tokens(tokens, x, rows, head, first);
  if (threadIdx.x < kTile) lasts[own] = y.last(first + own);
  Values<4> dx;
#pragma unroll 1
  for (int f0 = 0; f0 < kFeatures; f0 += kTile) {
    const auto part = [&](int f, int w) { return f0 + f < kFeatures ? state[(f0 + f) * (V + 1) + w] : 0.0f; };
    Sums<T> c;
#pragma unroll 1
    for (int w = 0; w < V; w += kDepth) {
      __syncthreads();
      load<T, Lanes::terms>(workspace.a, [&](int i, int k) { return y.at(first + i, w + k); });
      load<T, Lanes::terms>(workspace.b, [&](int f, int k) { return part(f, w + k); });
      __syncthreads();
      c.add(workspace);
    }
    c.for_own([&](int i, int f, float value) { d_phi[i][f] = fmaf(lasts[i], part(f, V), value); });
    __syncthreads();
    add_feature_gradients(dx, tokens[own], d_phi[own], group, f0);
  }
  if (first + own < x.length) store_values(to + x.key(head, first + own) + 4 * group, dx, true);
}

/// use(width of the values)
template <class T, class Use>
void with_values(const Heads<T>& x, const Use& use) {
  if (x.values == 64) return use(std::integral_constant<int, 64>{});
  use(std::integral_constant<int, 32>{});
}

template <class T>
unsigned blocks(const Heads<T>& x, Side side) {
  return static_cast<unsigned>(tiles_of(x, side) * x.count());
}

/// Of whole sequences, up to every boundary; from the carried `state` on where x.carried, else null.
template <int V, class Rows, class T>
void sum_features(Stream stream, const Heads<T>& x, const Gradients<T>& g, Side side, const T* rows, float* sums, float* state) {
  constexpr int kSize = kFeatures * (V + 1);
  const int64_t items = int64_t{x.count()} * kSize;
  const unsigned blocks = static_cast<unsigned>(x.count() * x.boundaries() * kFeatureTiles), item_blocks = blocks_for(items, kThreads);
  segment_sums_kernel<V, Rows><<<blocks, kThreads, 0, stream>>>(x, g, side, rows, sums);
  if (state)
    carried_sums_kernel<<<item_blocks, kThreads, 0, stream>>>(sums, state, x.boundaries(), kSize, items);
  else
    running_sums_kernel<<<item_blocks, kThreads, 0, stream>>>(sums, side, x.boundaries(), kSize, items);
}

}  // namespace

template <class T>
void add_past(Stream stream, const Heads<T>& x, float* past, float* state, T* o, float* denominator) {
  with_values(x, [&](auto width) {
    constexpr int kV = width();
    sum_features<kV, ValueRows<T>>(stream, x, Gradients<T>{}, Side::keys, x.k, past, state);
    read_past_kernel<kV><<<blocks(x, Side::queries), kThreads, 0, stream>>>(x, past, o, denominator);
  });
}

template <class T>
void add_state_gradients(Stream stream, const Heads<T>& x, const Gradients<T>& g, const float* past, float* future) {
  with_values(x, [&](auto width) {
    constexpr int kV = width();
    const unsigned queries = blocks(x, Side::queries), keys = blocks(x, Side::keys);
    if (g.dq) feature_gradients_kernel<kV, OutputGradients<T>><<<queries, kThreads, 0, stream>>>(x, g, Side::queries, x.q, past, g.dq);
    if (!g.dk && !g.dv) return;
    sum_features<kV, OutputGradients<T>>(stream, x, g, Side::queries, x.q, future, nullptr);
    if (g.dk) feature_gradients_kernel<kV, ValueRows<T>><<<keys, kThreads, 0, stream>>>(x, g, Side::keys, x.k, future, g.dk);
    if (g.dv) value_gradients_kernel<kV><<<keys, kThreads, 0, stream>>>(x, future, g.dv);
  });
}

#define INSTANTIATE(T)                                                            \
  template void add_past<T>(Stream, const Heads<T>&, float*, float*, T*, float*); \
  template void add_state_gradients<T>(Stream, const Heads<T>&, const Gradients<T>&, const float*, float*);
INSTANTIATE(float)
INSTANTIATE(bf16)
#undef INSTANTIATE

}  // namespace saccade::cuda::taylor
