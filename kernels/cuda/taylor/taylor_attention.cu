// Taylor attention in float32 without tensor cores, any sizes: all pairs of a segment in tiles of 64 queries and 64 keys; with a carried
// state but no segments token by token through the features. The weights.
#include "kernels/cuda/device/plain_tile.cuh"
#include "kernels/cuda/taylor/taylor_attention.cuh"

namespace saccade::cuda {
namespace {

using namespace plain;
using taylor::Gradients, taylor::Heads, taylor::kEpsilon, taylor::series;

struct Pairs {
  float at[kTile][kTile + 1];  ///< [query][key]
};

/// Of a block; those with the most keys come first.
template <class T>
__device__ int first_query(const Heads<T>& x) {
  return static_cast<int>((gridDim.x - 1 - blockIdx.x) / x.count()) * kTile;
}

/// s of a tile of queries and a tile of keys.
template <class T>
__device__ void scores(const Heads<T>& x, int head, int queries, int keys, Accumulator& s, Workspace& workspace) {
  clear(s);
  accumulate<Fast::sum, Fast::sum>(
      s, workspace, x.d,
      [&](int i, int n) { return queries + i < x.length ? to_float(x.q[x.key(head, queries + i) + n]) * x.scale : 0.0f; },
      [&](int j, int n) { return keys + j < x.length ? to_float(x.k[x.key(head, keys + j) + n]) : 0.0f; });
}

/// A block owns 64 queries of a head and up to 64 columns of its values.
template <class T>
__global__ void __launch_bounds__(kThreads) forward_kernel(Heads<T> x, T* o, float* denominator) {
  __shared__ alignas(16) Workspace workspace;
  __shared__ Pairs pairs;
  __shared__ float sums[kTile];
  const int head = static_cast<int>(gridDim.x - 1 - blockIdx.x) % x.count(), first = first_query(x),
            w0 = static_cast<int>(blockIdx.y) * kTile;
  if (threadIdx.x < kTile) sums[threadIdx.x] = 0;
  Accumulator s, c;
  clear(c);
  for (int keys = x.segment_begin(first); keys <= first; keys += kTile) {
    scores(x, head, first, keys, s, workspace);
    for_own(s, [&](int i, int j, float& value) { pairs.at[i][j] = value = keys + j <= first + i ? series(value) : 0.0f; });
    add_row_sums(s, sums, [](int, int, float value) { return value; });
    accumulate<Fast::sum, Fast::tile>(
        c, workspace, min(kTile, x.length - keys), [&](int i, int j) { return pairs.at[i][j]; },
        [&](int w, int j) { return w0 + w < x.values ? to_float(x.v[x.value(head, keys + j) + w0 + w]) : 0.0f; });
  }
  __syncthreads();
  for_own(c, [&](int i, int w, float value) {
    if (first + i < x.length && w0 + w < x.values) o[x.value(head, first + i) + w0 + w] = from_float<T>(value / (sums[i] + kEpsilon));
  });
  if (blockIdx.y == 0 && threadIdx.x < kTile && first + static_cast<int>(threadIdx.x) < x.length)
    denominator[x.line(head) + first + threadIdx.x] = sums[threadIdx.x];
}

/// d_denominator = −(d_o · o) / (denominator + ε); a warp owns a row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    denominator_gradients_kernel(Heads<T> x, const T* o, const T* d_o, const float* denominator, float* to) {
  const int64_t line = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  if (line >= int64_t{x.count()} * x.length) return;
  const int64_t at = x.value(static_cast<int>(line / x.length), static_cast<int>(line % x.length));
  float sum = 0;
  for (int w = static_cast<int>(threadIdx.x) % 32; w < x.values; w += 32) sum += to_float(o[at + w]) * to_float(d_o[at + w]);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) to[line] = -sum / (denominator[line] + kEpsilon);
}

/// pairs = p, or with kSlopes the gradient of q · k, of a tile; 0 where hidden.
template <bool kSlopes, class T>
__device__ void weigh(const Heads<T>& x, const Gradients<T>& out, int head, int queries, int keys, Workspace& workspace, Pairs& pairs) {
  Accumulator s, dp;
  scores(x, head, queries, keys, s, workspace);
  if constexpr (kSlopes) {
    clear(dp);
    accumulate<Fast::sum, Fast::sum>(
        dp, workspace, x.values,
        [&](int i, int w) { return queries + i < x.length ? to_float(out.d_o[x.value(head, queries + i) + w]) : 0.0f; },
        [&](int j, int w) { return keys + j < x.length ? to_float(x.v[x.value(head, keys + j) + w]) : 0.0f; });
  }
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int t = queries + row_of(i);
    const int64_t line = x.line(head) + min(t, x.length - 1);
    const float inverse = 1.0f / (out.denominator[line] + kEpsilon), d_sum = out.d_denominator[line];
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      const bool seen = t < x.length && keys + column_of(j) <= t;
      float value = series(s[i][j]);
      if constexpr (kSlopes) value = (dp[i][j] * inverse + d_sum) * (1.0f + s[i][j]) * x.scale;
      pairs.at[row_of(i)][column_of(j)] = seen ? value : 0.0f;
    }
  }
}

/// A block owns 64 queries of a head and up to 64 columns of them.
template <class T>
__global__ void __launch_bounds__(kThreads) query_gradients_kernel(Heads<T> x, Gradients<T> out) {
  __shared__ alignas(16) Workspace workspace;
  __shared__ Pairs pairs;
  const int head = static_cast<int>(gridDim.x - 1 - blockIdx.x) % x.count(), first = first_query(x),
            n0 = static_cast<int>(blockIdx.y) * kTile;
  Accumulator c;
  clear(c);
  for (int keys = x.segment_begin(first); keys <= first; keys += kTile) {
    weigh<true>(x, out, head, first, keys, workspace, pairs);
    accumulate<Fast::sum, Fast::tile>(
        c, workspace, min(kTile, x.length - keys), [&](int i, int j) { return pairs.at[i][j]; },
        [&](int n, int j) { return n0 + n < x.d ? to_float(x.k[x.key(head, keys + j) + n0 + n]) : 0.0f; });
  }
  for_own(c, [&](int i, int n, float value) {
    if (first + i < x.length && n0 + n < x.d) put(out.dq + x.key(head, first + i) + n0 + n, value, out.add_q);
  });
}

/// A block owns 64 keys of a head and up to 64 columns of them (kKeys) or of their values.
template <bool kKeys, class T>
__global__ void __launch_bounds__(kThreads) key_gradients_kernel(Heads<T> x, Gradients<T> out) {
  __shared__ alignas(16) Workspace workspace;
  __shared__ Pairs pairs;
  const int head = static_cast<int>(blockIdx.x) % x.count(), first = static_cast<int>(blockIdx.x) / x.count() * kTile,
            n0 = static_cast<int>(blockIdx.y) * kTile, columns = kKeys ? x.d : x.values;
  Accumulator c;
  clear(c);
  const int end = x.segment_end(first);
  for (int queries = first; queries < end; queries += kTile) {
    weigh<kKeys>(x, out, head, queries, first, workspace, pairs);
    accumulate<Fast::tile, Fast::tile>(
        c, workspace, min(kTile, x.length - queries), [&](int j, int i) { return pairs.at[i][j]; },
        [&](int n, int i) {
          if (n0 + n >= columns) return 0.0f;
          if constexpr (kKeys) return to_float(x.q[x.key(head, queries + i) + n0 + n]);
          return to_float(out.d_o[x.value(head, queries + i) + n0 + n]) / (out.denominator[x.line(head) + queries + i] + kEpsilon);
        });
  }
  T* to = kKeys ? out.dk : out.dv;
  for_own(c, [&](int j, int n, float value) {
    if (first + j < x.length && n0 + n < columns)
      put(to + (kKeys ? x.key(head, first + j) : x.value(head, first + j)) + n0 + n, value, kKeys ? out.add_k : out.add_v);
  });
}

constexpr int kSlices = 8;

/// A block of 32 x kSlices owns a head: columns of [v | 1] by 32, rows i of the products x_i x_j in slices.
template <class T>
__global__ void __launch_bounds__(32 * kSlices) carried_kernel(Heads<T> x, float* states, T* o, float* denominator) {
  extern __shared__ float shared[];
  float *q = shared, *k = q + x.d, *sums = k + x.d, *parts = sums + x.values + 1;  // sums [V + 1], parts [kSlices, 32]
  const int head = static_cast<int>(blockIdx.x), width = x.values + 1, lane = static_cast<int>(threadIdx.x) % 32,
            slice = static_cast<int>(threadIdx.x) / 32;
  float* state = states + int64_t{head} * (1 + x.d + x.d * (x.d + 1) / 2) * width;
  const float linear = sqrtf(x.scale), square = x.scale * 0.70710678f;
  for (int t = 0; t < x.length; ++t) {
    __syncthreads();
    for (int i = threadIdx.x; i < x.d; i += 32 * kSlices)
      q[i] = to_float(x.q[x.key(head, t) + i]), k[i] = to_float(x.k[x.key(head, t) + i]);
    __syncthreads();
    for (int w0 = 0; w0 < width; w0 += 32) {
      const int w = w0 + lane;
      float sum = 0;
      if (w < width) {
        const float value = w < x.values ? to_float(x.v[x.value(head, t) + w]) : 1.0f;
        const auto use = [&](int feature, float of_q, float of_k) {
          float& s = state[int64_t{feature} * width + w];
          s = fmaf(of_k, value, s);
          sum = fmaf(of_q, s, sum);
        };
        if (slice == 0) use(0, 1.0f, 1.0f);
        for (int i = slice; i < x.d; i += kSlices) {
          use(1 + i, linear * q[i], linear * k[i]);
          const int first = 1 + x.d + i * x.d - i * (i - 1) / 2;
          use(first, square * q[i] * q[i], square * k[i] * k[i]);
          for (int j = i + 1; j < x.d; ++j) use(first + j - i, x.scale * q[i] * q[j], x.scale * k[i] * k[j]);
        }
      }
      parts[slice * 32 + lane] = sum;
      __syncthreads();
      if (slice == 0 && w < width) {
        for (int i = 1; i < kSlices; ++i) sum += parts[i * 32 + lane];
        sums[w] = sum;
      }
      __syncthreads();
    }
    for (int w = threadIdx.x; w < x.values; w += 32 * kSlices)
      o[x.value(head, t) + w] = from_float<T>(sums[w] / (sums[x.values] + kEpsilon));
    if (threadIdx.x == 0) denominator[x.line(head) + t] = sums[x.values];
  }
}

/// A block owns the queries [first, first + kTile) of a head, of the sequences from `first_sequence` on.
template <class T>
__global__ void __launch_bounds__(kThreads) weights_kernel(Heads<T> x, int first_sequence, float* weights) {
  __shared__ Workspace workspace;
  __shared__ float sums[kTile];
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kTile, end = min(x.length, first + kTile);  // the longest first
  const int head = first_sequence * x.heads + static_cast<int>(blockIdx.y);
  float* map = weights + int64_t{blockIdx.y} * x.length * x.length;
  if (threadIdx.x < kTile) sums[threadIdx.x] = 0;
  for (int keys = 0; keys < end; keys += kTile) {
    Accumulator s;
    scores(x, head, first, keys, s, workspace);
    for_own(s, [&](int row, int column, float& element) {
      const int t = first + row, j = keys + column;
      element = j <= t && t < end ? series(element) : 0.0f;
      if (t < end && j < end) map[int64_t{t} * x.length + j] = element;
    });
    add_row_sums(s, sums, [](int, int, float element) { return element; });
  }
  __syncthreads();
  for (int t = first + static_cast<int>(threadIdx.x) / 32; t < end; t += kThreads / 32) {  // a warp per query
    float* row = map + int64_t{t} * x.length;
    const float inverse = 1.0f / (sums[t - first] + kEpsilon);
    for (int j = static_cast<int>(threadIdx.x) % 32; j < x.length; j += 32) row[j] = j < end ? row[j] * inverse : 0.0f;
  }
}

/// Tiles of all heads.
template <class T>
dim3 blocks(const Heads<T>& x, int columns) {
  return {blocks_for(x.length, kTile) * static_cast<unsigned>(x.count()), blocks_for(columns, kTile)};
}

template <class T>
void forward_pairs(Stream stream, const Heads<T>& x, bool on_tensor_cores, T* o, float* denominator) {
  if constexpr (std::is_same_v<T, bf16>)
    if (on_tensor_cores) return taylor::forward_on_tensor_cores(stream, x, o, denominator);
  forward_kernel<T><<<blocks(x, x.values), kThreads, 0, stream>>>(x, o, denominator);
}

template <class T>
void backward_pairs(Stream stream, const Heads<T>& x, bool on_tensor_cores, const Gradients<T>& g, const T* o) {
  if constexpr (std::is_same_v<T, bf16>)
    if (on_tensor_cores) return taylor::backward_on_tensor_cores(stream, x, g, o);
  denominator_gradients_kernel<T>
      <<<blocks_for(int64_t{x.count()} * x.length, kThreads / 32), kThreads, 0, stream>>>(x, o, g.d_o, g.denominator, g.d_denominator);
  if (g.dq) query_gradients_kernel<T><<<blocks(x, x.d), kThreads, 0, stream>>>(x, g);
  if (g.dk) key_gradients_kernel<true, T><<<blocks(x, x.d), kThreads, 0, stream>>>(x, g);
  if (g.dv) key_gradients_kernel<false, T><<<blocks(x, x.values), kThreads, 0, stream>>>(x, g);
}

}  // namespace

void taylor_attention(Stream stream, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& state, const TaylorSegments& segments,
                      const Tensor& o, const Tensor& denominator) {
  dispatch_cuda(v.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Heads<T> x(q, k, v, segments, state);
    float *sums = pointer<float>(denominator), *carried = state ? pointer<float>(state) : nullptr;
    if (carried && !segments.past) {
      const size_t shared = static_cast<size_t>(2 * x.d + x.values + 1 + kSlices * 32) * sizeof(float);
      carried_kernel<T><<<static_cast<unsigned>(x.count()), 32 * kSlices, shared, stream>>>(x, carried, pointer<T>(o), sums);
      return;
    }
    forward_pairs(stream, x, taylor_on_tensor_cores(q, v), pointer<T>(o), sums);
    if (segments.past) taylor::add_past(stream, x, pointer<float>(segments.past), carried, pointer<T>(o), sums);
  });
  check_launch();
}

void taylor_attention_backward(Stream stream, const Tensor& q, const Tensor& k, const Tensor& v, const TaylorGradients& out) {
  dispatch_cuda(v.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Heads<T> x(q, k, v, out.segments);
    const Gradients<T> gradients(out);
    backward_pairs(stream, x, taylor_on_tensor_cores(q, v), gradients, pointer<T>(out.o));
    if (out.segments.past) taylor::add_state_gradients(stream, x, gradients, pointer<float>(out.segments.past), pointer<float>(out.future));
  });
  check_launch();
}

void taylor_weights(Stream stream, const Tensor& q, const Tensor& k, const Sequences& sequences, const Tensor& weights) {
  dispatch_cuda(q.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Heads<T> x(q, k, k);
    const dim3 grid(blocks_for(x.length, kTile), static_cast<unsigned>(weights.dim(0)));
    weights_kernel<T><<<grid, kThreads, 0, stream>>>(x, static_cast<int>(sequences.first), pointer<float>(weights));
  });
  check_launch();
}

}  // namespace saccade::cuda
