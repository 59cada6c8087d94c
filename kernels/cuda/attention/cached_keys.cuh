#pragma once
/// One query against rows of a cache of keys and values. Device code only.
#include "kernels/cuda/attention/attention_pattern.cuh"
#include "kernels/cuda/device/start_position.cuh"
#include "kernels/ops/decoding/decoding_cuda.h"

namespace saccade::cuda {

constexpr int kSplitThreads = 128;
/// Rows that a group of lanes loads ahead.
constexpr int kRowsAhead = 4;

/// How lanes share a row of `width` elements: kLanes of them, each kPieces vectors of kVec elements; zeros beyond the row.
template <class T, int kVec, int kLanes_, int kPieces>
struct RowShare {
  using Element = T;
  static constexpr int kVectorElements = kVec, kLanes = kLanes_, kElements = kVec * kPieces, kGroups = kSplitThreads / kLanes;

  float x[kElements];

  __device__ static int column(int i, int lane) { return ((i / kVec) * kLanes + lane) * kVec + i % kVec; }
  /// Null: zeros.
  __device__ void load(const T* row, int width, int lane) {
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      const int at = (piece * kLanes + lane) * kVec;
      const bool there = row && at < width;
      if constexpr (kVec == kVector<T>) {
        Pack<T> pack{};
        if (there) pack = load_pack(row + at);
#pragma unroll
        for (int i = 0; i < kVec; ++i) x[piece * kVec + i] = to_float(pack.v[i]);
      } else {
        x[piece] = there ? to_float(row[at]) : 0.0f;
      }
    }
  }
  /// In all lanes of the group.
  __device__ float dot(const RowShare& y) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kElements; ++i) sum += x[i] * y.x[i];
#pragma unroll
    for (int step = kLanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return sum;
  }
};

/// f(RowShare) for heads of a width.
template <class T, class F>
void for_row_share(int64_t width, F&& f) {
  constexpr int kVec = kVector<T>;
  if (width > 256) throw DeviceError("decoding on CUDA takes head widths up to 256, not " + std::to_string(width));
  if (width % kVec != 0) return f(RowShare<T, 1, 32, 8>{});
  const int64_t pieces = width / kVec;
  if (pieces <= 4) return f(RowShare<T, kVec, 4, 1>{});
  if (pieces <= 8) return f(RowShare<T, kVec, 8, 1>{});
  if (pieces <= 16) return f(RowShare<T, kVec, 16, 1>{});
  if (pieces <= 32) return f(RowShare<T, kVec, 32, 1>{});
  if constexpr (kVec == 4) f(RowShare<T, kVec, 32, 2>{});
}

/// One query of one head, and the head's rows of the cache, `stride` elements apart.
template <class T>
struct CachedHead {
  const T *q, *k, *v;
  int64_t stride;
  int width, t;  ///< t: the query's position
  float scale, slope;

  __device__ float score(float dot, int j) const { return scale * dot - slope * static_cast<float>(t - j); }
};

/// Maximum over a block of kSplitThreads threads, in every thread.
__device__ __forceinline__ float block_max(float x) {
  __shared__ float parts[kSplitThreads / 32];
  x = warp_max(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kSplitThreads / 32; ++w) x = fmaxf(x, parts[w]);
  return x;
}

/// f(i, row i) for rows 0 … count − 1 from `from`, `stride` elements apart: kGroups groups of lanes take them round-robin and load
/// kRowsAhead rows ahead. All lanes leave together: f gets zeros for rows from `count` on.
template <class Row, int kGroups = Row::kGroups, class F>
__device__ __forceinline__ void each_row(const typename Row::Element* from, int64_t stride, int width, int count, F&& f) {
  const int group = threadIdx.x / Row::kLanes % kGroups, lane = threadIdx.x % Row::kLanes;
  for (int base = 0; base < count; base += kGroups * kRowsAhead) {
    const auto index = [&](int a) { return base + a * kGroups + group; };
    Row rows[kRowsAhead];
#pragma unroll
    for (int a = 0; a < kRowsAhead; ++a) rows[a].load(index(a) < count ? from + index(a) * stride : nullptr, width, lane);
#pragma unroll
    for (int a = 0; a < kRowsAhead; ++a) f(index(a), rows[a]);
  }
}

/// Scores of keys begin … begin + count − 1 into shared memory, by all threads of the block; returns their maximum.
template <class Row>
__device__ float score_keys(const CachedHead<typename Row::Element>& head, int begin, int count, float* scores) {
  const int lane = threadIdx.x % Row::kLanes;
  Row query;
  query.load(head.q, head.width, lane);
  float top = -INFINITY;
  each_row<Row>(head.k + begin * head.stride, head.stride, head.width, count, [&](int i, const Row& key) {
    const float s = head.score(query.dot(key), begin + i);
    if (i >= count) return;
    if (lane == 0) scores[i] = s;
    top = fmaxf(top, s);
  });
  return block_max(top);
}

/// Attention to keys begin … begin + count − 1 (at most kSplitKeys), not normalised: out[0] = max s, out[1] = Σ exp(s − max),
/// out[2 …] = Σ exp(s − max) v. Without keys max is −inf.
template <class Row>
__device__ void attend_split(const CachedHead<typename Row::Element>& head, int begin, int count, float* out) {
  constexpr int kWarps = kSplitThreads / 32;
  __shared__ float scores[kSplitKeys];
  __shared__ float sums[kWarps][256];
  const int lane = threadIdx.x % Row::kLanes;
  if (count <= 0) {
    for (int i = threadIdx.x; i < head.width + 2; i += kSplitThreads) out[i] = i == 0 ? -INFINITY : 0.0f;
    return;
  }
  const float top = score_keys<Row>(head, begin, count, scores);
  float sum = 0;
  for (int i = threadIdx.x; i < count; i += kSplitThreads) {
    scores[i] = expf(scores[i] - top);
    sum += scores[i];
  }
  sum = block_sum<kSplitThreads>(sum);

  float acc[Row::kElements] = {};
  each_row<Row>(head.v + begin * head.stride, head.stride, head.width, count, [&](int i, const Row& value) {
    const float p = i < count ? scores[i] : 0.0f;
#pragma unroll
    for (int e = 0; e < Row::kElements; ++e) acc[e] += p * value.x[e];
  });
#pragma unroll
  for (int e = 0; e < Row::kElements; ++e) {
#pragma unroll
    for (int step = Row::kLanes; step < 32; step *= 2) acc[e] += __shfl_xor_sync(0xffffffffu, acc[e], step);
    const int i = Row::column(e, lane);
    if (threadIdx.x % 32 == lane && i < head.width) sums[threadIdx.x / 32][i] = acc[e];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < head.width; i += kSplitThreads) {
    float total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total += sums[w][i];
    out[2 + i] = total;
  }
  if (threadIdx.x == 0) out[0] = top, out[1] = sum;
}

/// Arguments of the kernels of one decoding step; queries `from` … of the n new ones share a workspace.
template <class T>
struct CachedArgs {
  const T *q, *k, *v;
  T* o;
  int64_t q_batch, k_batch, v_batch;  ///< elements between sequences
  int n, heads, width, window, splits, from;
  float scale;
  bool alibi, released_alibi;
  StartPosition start;

  __device__ int64_t stride() const { return int64_t{heads} * width; }
  __device__ CachedHead<T> head(int batch_head, int r) const {
    const int b = batch_head / heads, h = batch_head % heads;
    const float slope = alibi ? alibi_slope(h, heads, released_alibi) : 0.0f;
    return {q + b * q_batch + r * stride() + h * width,
            k + b * k_batch + h * width,
            v + b * v_batch + h * width,
            stride(),
            width,
            static_cast<int>(start(b)) + r,
            scale,
            slope};
  }
  /// First key that a query at position t sees.
  __device__ int low(int t) const { return window > 0 ? max(0, t - window + 1) : 0; }
  __device__ T* output(int batch_head, int r) const {
    return o + ((int64_t{batch_head / heads} * n + r) * heads + batch_head % heads) * width;
  }
};

template <class T>
CachedArgs<T> cached_args(const CachedTask& task, int64_t splits) {
  const HeadShape& s = task.shape;
  const auto sequence = [&](const Tensor& x) { return x.dim(0) == 1 && s.batch > 1 ? 0 : x.size() / x.dim(0); };
  return {pointer<T>(task.q),
          pointer<T>(task.k),
          pointer<T>(task.v),
          pointer<T>(task.o),
          sequence(task.q),
          sequence(task.k),
          sequence(task.v),
          static_cast<int>(s.length),
          static_cast<int>(s.heads),
          static_cast<int>(s.width),
          static_cast<int>(std::min(task.options.window, task.v.dim(1))),
          static_cast<int>(splits),
          0,
          static_cast<float>(task.options.scale),
          task.options.alibi,
          task.options.released_alibi,
          start_position(task.position)};
}

/// o of every query from all its splits, in their order. partial f32 [batch x heads, queries of the pass, splits, d + 2].
template <class T>
void merge_splits(Stream stream, const CachedArgs<T>& args, int64_t batch_heads, int64_t queries, int64_t row_queries,
                  const float* partial);
extern template void merge_splits(Stream, const CachedArgs<float>&, int64_t, int64_t, int64_t, const float*);
extern template void merge_splits(Stream, const CachedArgs<bf16>&, int64_t, int64_t, int64_t, const float*);

/// launch(args, queries) for the n new queries, `most` at a time.
template <class T, class Launch>
void in_passes(CachedArgs<T> args, int64_t most, Launch&& launch) {
  for (args.from = 0; args.from < args.n; args.from += static_cast<int>(most)) launch(args, std::min<int64_t>(most, args.n - args.from));
}

}  // namespace saccade::cuda
