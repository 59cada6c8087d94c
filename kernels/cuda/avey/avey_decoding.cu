// Decoding: where a sequence is, is read on the device, so that a captured step serves every position. A warp moves one row.
#include "kernels/cuda/avey/avey_choice.cuh"
#include "kernels/cuda/device/start_position.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/ops/avey/decoding_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kWarps = 8, kThreads = 32 * kWarps;

template <int kValues, class T>
__global__ void __launch_bounds__(kThreads) inverse_lengths_kernel(const T* x, float* inverses, int rows, int D) {
  const int row = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / 32);
  if (row >= rows) return;
  float sum = 0;
  for (int d = static_cast<int>(threadIdx.x) % 32 * kValues; d < D; d += 32 * kValues) {
    const Values<kValues> values = load_values<kValues>(x + int64_t{row} * D + d);
#pragma unroll
    for (int v = 0; v < kValues; ++v) sum += values.v[v] * values.v[v];
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) inverses[row] = inverse(sqrtf(sum));
}

/// avey::SplitTokens as a kernel argument.
struct Tokens {
  StartPosition start;
  int from, count;
  Tokens(const avey::SplitTokens& t)  // NOLINT: the same, on the device
      : start(start_position(t.position)), from(static_cast<int>(t.from)), count(static_cast<int>(t.count)) {}
  __device__ int first(int b) const { return static_cast<int>(start(b)) + from; }
  __device__ int last(int b) const { return first(b) + count - 1; }
};

struct Asked {
  Tokens tokens;
  int capacity, D, S, N;
  bool causal;
};

/// Greatest cosine of kQueries tokens with the tokens of a split, over a block's warps: best [kWarps][kQueries] in shared memory, still
/// to be multiplied by the queries' inverse lengths.
template <int kValues, int kQueries, class T>
__device__ __forceinline__ void nearest_keys(const T* const (&queries)[kQueries], const T* keys, const float* of_keys, int S, int D,
                                             float (*best)[kQueries]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  float most[kQueries];
#pragma unroll
  for (int q = 0; q < kQueries; ++q) most[q] = -INFINITY;
  for (int key = warp; key < S; key += kWarps) {
    float dot[kQueries] = {};
    for (int d = lane * kValues; d < D; d += 32 * kValues) {
      const Values<kValues> k = load_values<kValues>(keys + int64_t{key} * D + d);
#pragma unroll
      for (int q = 0; q < kQueries; ++q) {
        const Values<kValues> x = load_values<kValues>(queries[q] + d);
#pragma unroll
        for (int v = 0; v < kValues; ++v) dot[q] += k.v[v] * x.v[v];
      }
    }
#pragma unroll
    for (int q = 0; q < kQueries; ++q) most[q] = fmaxf(most[q], warp_sum(dot[q]) * of_keys[key]);
  }
  if (lane == 0)
#pragma unroll
    for (int q = 0; q < kQueries; ++q) best[warp][q] = most[q];
}

/// Block (split p, b): the queries one after the other, kQueries at a time.
template <int kValues, int kQueries, class T>
__global__ void __launch_bounds__(kThreads) maxsim_kernel(const Asked z, const T* x, const float* inverses, float* scores) {
  __shared__ float best[kWarps][kQueries];
  const int p = static_cast<int>(blockIdx.x), b = static_cast<int>(blockIdx.y);
  const int first = z.tokens.first(b), i = z.tokens.last(b) / z.S;
  const bool anew = first % z.S == 0;
  if (p >= i || (z.causal && !anew)) return;
  const int from = z.causal ? (i - 1) * z.S : first, count = z.causal ? z.S : z.tokens.count;
  const T* sequence = x + int64_t{b} * z.capacity * z.D;
  const float* lengths = inverses + int64_t{b} * z.capacity;
  float& score = scores[int64_t{b} * z.N + p];
  float sum = anew ? 0.0f : score;
  for (int a = 0; a < count; a += kQueries) {
    const T* queries[kQueries];
#pragma unroll
    for (int q = 0; q < kQueries; ++q) queries[q] = sequence + int64_t{from + min(a + q, count - 1)} * z.D;
    nearest_keys<kValues, kQueries>(queries, sequence + int64_t{p} * z.S * z.D, lengths + p * z.S, z.S, z.D, best);
    __syncthreads();
    if (threadIdx.x == 0)
      for (int q = 0; q < kQueries && a + q < count; ++q) {
        float most = best[0][q];
        for (int w = 1; w < kWarps; ++w) most = fmaxf(most, best[w][q]);
        sum += most * lengths[from + a + q];
      }
    __syncthreads();
  }
  if (threadIdx.x == 0) score = sum;
}

/// Block b.
__global__ void __launch_bounds__(kThreads) rank_kernel(const Tokens tokens, int S, int N, int k, bool weighting, bool first_reference,
                                                        const float* scores, int32_t* all_chosen, float* all_weights) {
  const int b = static_cast<int>(blockIdx.x), i = tokens.last(b) / S, count = min(i, k);
  int32_t* chosen = all_chosen + int64_t{b} * k;
  float* weights = all_weights + int64_t{b} * k;
  for (int s = count + static_cast<int>(threadIdx.x); s < k; s += kThreads) chosen[s] = -1, weights[s] = 0;
  choose<kThreads>({i, count, weighting, first_reference}, scores + int64_t{b} * N, chosen, weights);
}

/// avey::SplitContext as a kernel argument.
struct Context {
  Tokens tokens;
  int split, top_k, rows;
  bool packed;
  Context(const avey::SplitContext& c)  // NOLINT: the same, on the device
      : tokens(c.tokens),
        split(static_cast<int>(c.split)),
        top_k(static_cast<int>(c.top_k)),
        rows(static_cast<int>(c.rows)),
        packed(c.packed) {}
};

/// Where the parts of the context of sequence b begin: the chosen splits and its own tokens.
struct Places {
  int split, chosen, own, own_count;
  __device__ Places(const Context& c, int b) {
    const int last = c.tokens.last(b);
    split = last / c.split;
    const int count = min(split, c.top_k);
    chosen = c.packed ? 0 : c.split * (c.top_k - count);
    own = chosen + c.split * count;
    own_count = last - split * c.split + 1;
  }
};

/// By a warp: to = weight · from, or zeros.
template <int kValues, class T>
__device__ __forceinline__ void put_row(T* to, const T* from, float weight, int D) {
  for (int d = static_cast<int>(threadIdx.x) % 32 * kValues; d < D; d += 32 * kValues) {
    Values<kValues> values;
    if (from) values = load_values<kValues>(from + d);
#pragma unroll
    for (int v = 0; v < kValues; ++v) values.v[v] *= weight;
    store_values(to + d, values);
  }
}

template <int kValues, class T>
__global__ void __launch_bounds__(kThreads)
    context_kernel(const Context c, int batch, int capacity, const T* x, const int32_t* chosen, const float* weights, T* rows, int D) {
  const int place = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / 32), b = place / c.rows, row = place % c.rows;
  if (b >= batch) return;
  const Places at(c, b);
  const T* sequence = x + int64_t{b} * capacity * D;
  const T* from = nullptr;
  float weight = 1;
  if (row >= at.own) {
    if (row < at.own + at.own_count) from = sequence + int64_t{at.split * c.split + row - at.own} * D;
  } else if (row >= at.chosen) {
    const int entry = b * c.top_k + (row - at.chosen) / c.split;
    from = sequence + int64_t{chosen[entry] * c.split + (row - at.chosen) % c.split} * D;
    weight = weights[entry];
  }
  put_row<kValues>(rows + int64_t{place} * D, from, weight, D);
}

template <int kValues, class T>
__global__ void __launch_bounds__(kThreads) clear_padding_kernel(const Context c, int batch, T* Z, int r) {
  const int place = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / 32), b = place / c.rows, row = place % c.rows;
  if (b >= batch || row >= Places(c, b).chosen) return;
  put_row<kValues, T>(Z + int64_t{place} * r, nullptr, 0, r);
}

template <int kValues, class T>
__global__ void __launch_bounds__(kThreads) last_kernel(const Context c, int batch, int n, const T* rows, T* last, int D) {
  const int place = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / 32), b = place / n;
  if (b >= batch) return;
  const Places at(c, b);
  const int row = at.own + at.own_count - n + place % n;
  put_row<kValues>(last + int64_t{place} * D, rows + (int64_t{b} * c.rows + row) * D, 1, D);
}

}  // namespace

void inverse_lengths(Stream stream, const Tensor& x, const Tensor& inverse) {
  const int D = static_cast<int>(x.dim(2)), rows = static_cast<int>(inverse.size());
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    in_pieces<8>(D, [&](auto n) {
      inverse_lengths_kernel<n()><<<blocks_for(rows, kWarps), kThreads, 0, stream>>>(pointer<T>(x), pointer<float>(inverse), rows, D);
    });
  });
  check_launch();
}

void add_maxsim(Stream stream, const Tensor& x, const Tensor& inverse, const avey::RankerOptions& o, const avey::SplitTokens& tokens,
                const Tensor& scores) {
  const Asked z{tokens,
                static_cast<int>(x.dim(1)),
                static_cast<int>(x.dim(2)),
                static_cast<int>(o.split),
                static_cast<int>(scores.dim(1)),
                o.query == avey::RankerQuery::causal};
  const dim3 grid(static_cast<unsigned>(z.N), static_cast<unsigned>(x.dim(0)));
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    in_pieces<8>(z.D, [&](auto n) {
      const auto launch = [&](auto queries) {
        maxsim_kernel<n(), queries()><<<grid, kThreads, 0, stream>>>(z, pointer<T>(x), pointer<float>(inverse), pointer<float>(scores));
      };
      z.causal || tokens.count > 1 ? launch(std::integral_constant<int, 8>{}) : launch(std::integral_constant<int, 1>{});
    });
  });
  check_launch();
}

void rank_split(Stream stream, const Tensor& scores, const avey::RankerOptions& o, const avey::SplitTokens& tokens,
                const avey::Ranked& out) {
  rank_kernel<<<static_cast<unsigned>(scores.dim(0)), kThreads, 0, stream>>>(
      tokens, static_cast<int>(o.split), static_cast<int>(scores.dim(1)), static_cast<int>(o.top_k), o.weighting,
      o.reference == avey::WeightReference::first, pointer<float>(scores), pointer<int32_t>(out.chosen), pointer<float>(out.weights));
  check_launch();
}

void split_context(Stream stream, const Tensor& x, const avey::Ranked& ranked, const avey::SplitContext& c, const Tensor& rows) {
  const int batch = static_cast<int>(x.dim(0)), capacity = static_cast<int>(x.dim(1)), D = static_cast<int>(x.dim(2));
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    in_pieces<8>(D, [&](auto n) {
      context_kernel<n()><<<blocks_for(batch * c.rows, kWarps), kThreads, 0, stream>>>(
          c, batch, capacity, pointer<T>(x), pointer_or_null<int32_t>(ranked.chosen), pointer_or_null<float>(ranked.weights),
          pointer<T>(rows), D);
    });
  });
  check_launch();
}

void clear_padding(Stream stream, const Tensor& Z, const avey::SplitContext& c) {
  const int batch = static_cast<int>(Z.dim(0) / c.rows), r = static_cast<int>(Z.dim(1));
  dispatch_cuda(Z.dtype(), [&](auto t) {
    using T = decltype(t);
    in_pieces<8>(
        r, [&](auto n) { clear_padding_kernel<n()><<<blocks_for(Z.dim(0), kWarps), kThreads, 0, stream>>>(c, batch, pointer<T>(Z), r); });
  });
  check_launch();
}

void rows_of_last(Stream stream, const Tensor& rows, const avey::SplitContext& c, const Tensor& last) {
  const int batch = static_cast<int>(last.dim(0)), n = static_cast<int>(last.dim(1)), D = static_cast<int>(last.dim(2));
  dispatch_cuda(rows.dtype(), [&](auto t) {
    using T = decltype(t);
    in_pieces<8>(D, [&](auto pieces) {
      last_kernel<pieces()>
          <<<blocks_for(int64_t{batch} * n, kWarps), kThreads, 0, stream>>>(c, batch, n, pointer<T>(rows), pointer<T>(last), D);
    });
  });
  check_launch();
}

}  // namespace saccade::cuda
