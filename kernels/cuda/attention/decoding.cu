// Caches, positions, and Top-1 Element: the keys seen are cut in splits of kSplitKeys, a block takes one split of one query, and another
// kernel looks at a query's splits in order. Launches cover the capacity, so that their sizes do not depend on the position.
#include "kernels/ops/decoding/decoding_cuda.h"

#include "kernels/cuda/attention/cached_keys.cuh"

namespace saccade::cuda {
namespace {

constexpr int kCopyThreads = 256, kMergeWarps = 8;

/// P: 16 bytes, or an element where rows are no multiple of that. `sequence`: from one sequence of the cache to the next, 0 where there is
/// one for all, who then write the same.
template <class P>
__global__ void append_kernel(const P* rows, P* cache, int64_t n, int64_t sequence, int64_t row, int64_t size, StartPosition start) {
  const int64_t i = int64_t{blockIdx.x} * kCopyThreads + threadIdx.x;
  if (i >= size) return;
  const int64_t b = i / (n * row), rest = i % (n * row);
  cache[b * sequence + start(b) * row + rest] = rows[i];
}

/// Rows of `row` pieces, of which `n` are copied; P as above.
template <class P>
__global__ void copy_sequences_kernel(const P* from, const int32_t* index, P* to, int64_t row, int64_t n, int64_t size) {
  const int64_t i = int64_t{blockIdx.x} * kCopyThreads + threadIdx.x;
  if (i >= size) return;
  const int64_t b = i / n, at = i % n, a = index ? index[b] : 0;
  to[b * row + at] = from[a * row + at];
}

__global__ void advance_kernel(int32_t* position, int32_t n, int64_t sequences) {
  const int64_t b = int64_t{blockIdx.x} * kCopyThreads + threadIdx.x;
  if (b < sequences) position[b] += n;
}

/// Splits of a query: the first one begins at a multiple of kSplitKeys.
struct Splits {
  int first_key, low, end;
  __device__ int count() const { return (end - first_key + int{kSplitKeys} - 1) / int{kSplitKeys}; }
};
template <class T>
__device__ Splits splits_of(const CachedArgs<T>& a, int t) {
  const int low = a.low(t);
  return {low / int{kSplitKeys} * int{kSplitKeys}, low, t + 1};
}

template <class T>
__device__ float* partial_of(const CachedArgs<T>& a, float* partial, int batch_head, int row, int rows, int split) {
  return partial + ((int64_t{batch_head} * rows + row) * a.splits + split) * (a.width + 2);
}

/// Block (split, batch_head, query of this pass): partial [0] = greatest score, [1] = the first key that has it.
template <class Row>
__global__ void __launch_bounds__(kSplitThreads) best_kernel(const CachedArgs<typename Row::Element> a, float* partial, int rows) {
  __shared__ float scores[kSplitKeys];
  __shared__ int first;
  const auto head = a.head(blockIdx.y, a.from + blockIdx.z);
  const Splits splits = splits_of(a, head.t);
  if (static_cast<int>(blockIdx.x) >= splits.count()) return;
  const int begin = max(splits.low, splits.first_key + int{kSplitKeys} * static_cast<int>(blockIdx.x));
  const int end = min(splits.end, splits.first_key + int{kSplitKeys} * static_cast<int>(blockIdx.x + 1));
  if (threadIdx.x == 0) first = kSplitKeys;
  const float top = score_keys<Row>(head, begin, end - begin, scores);
  for (int i = threadIdx.x; i < end - begin; i += kSplitThreads)
    if (scores[i] == top) atomicMin(&first, i);
  __syncthreads();
  if (threadIdx.x != 0) return;
  float* out = partial_of(a, partial, blockIdx.y, blockIdx.z, rows, blockIdx.x);
  out[0] = top, out[1] = __int_as_float(min(begin + first, end - 1));
}

/// A block per (batch_head, query): the best of its splits, the earlier of equals.
template <class T>
__global__ void __launch_bounds__(32) pick_kernel(const CachedArgs<T> a, const float* partial, int rows, int32_t* selected) {
  const int batch_head = blockIdx.x, r = a.from + blockIdx.y;
  const auto head = a.head(batch_head, r);
  const int count = splits_of(a, head.t).count();
  float best = -INFINITY;
  int key = INT_MAX;
  for (int s = threadIdx.x; s < count; s += 32) {
    const float* split = partial + ((int64_t{batch_head} * rows + blockIdx.y) * a.splits + s) * (a.width + 2);
    if (split[0] > best || key == INT_MAX) best = split[0], key = __float_as_int(split[1]);
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, best, step);
    const int other_key = __shfl_xor_sync(0xffffffffu, key, step);
    if (other > best || (other == best && other_key < key)) best = other, key = other_key;
  }
  if (threadIdx.x == 0) selected[int64_t{batch_head} * a.n + r] = key;
  T* o = a.output(batch_head, r);
  for (int i = threadIdx.x; i < a.width; i += 32) o[i] = head.v[int64_t{key} * head.stride + i];
}

/// A block per (batch_head, query): a warp sums every eighth split, then the warps' sums are added in order.
template <class T>
__global__ void __launch_bounds__(32 * kMergeWarps) merge_kernel(const CachedArgs<T> a, const float* partial, int rows) {
  __shared__ float sums[kMergeWarps][258];
  const int batch_head = blockIdx.x, r = a.from + blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int count = a.splits, row = a.width + 2;
  const float* splits = partial + (int64_t{batch_head} * rows + blockIdx.y) * a.splits * row;
  float top = -INFINITY;
  for (int s = lane; s < count; s += 32) top = fmaxf(top, splits[int64_t{s} * row]);
  top = warp_max(top);
  float acc[9] = {};
  for (int s = warp; s < count; s += kMergeWarps) {
    const float* split = splits + int64_t{s} * row;
    const float weight = expf(split[0] - top);
#pragma unroll
    for (int c = 0; c < 9; ++c)
      if (lane + 32 * c < row - 1) acc[c] += weight * split[1 + lane + 32 * c];
  }
#pragma unroll
  for (int c = 0; c < 9; ++c)
    if (lane + 32 * c < row - 1) sums[warp][lane + 32 * c] = acc[c];
  __syncthreads();
  float sum = 0;
  for (int w = 0; w < kMergeWarps; ++w) sum += sums[w][0];
  T* o = a.output(batch_head, r);
  for (int i = threadIdx.x; i < a.width; i += 32 * kMergeWarps) {
    float total = 0;
    for (int w = 0; w < kMergeWarps; ++w) total += sums[w][1 + i];
    o[i] = from_float<T>(total / sum);
  }
}

/// Launches `kernel` of a row share for one pass.
template <class T, class Kernel>
void launch_splits(Stream stream, const CachedArgs<T>& args, int64_t batch_heads, int64_t queries, const Tensor& scratch, Kernel kernel) {
  kernel<<<dim3(static_cast<unsigned>(args.splits), static_cast<unsigned>(batch_heads), static_cast<unsigned>(queries)), kSplitThreads, 0,
           stream>>>(args, pointer<float>(scratch), static_cast<int>(scratch.dim(1)));
  check_launch();
}

}  // namespace

void append_rows(Stream stream, const Tensor& rows, const Tensor& cache, const TokenPosition& position) {
  const int64_t n = rows.dim(1), capacity = cache.dim(1), row = rows.bytes() / (rows.dim(0) * n);
  const auto launch = [&](auto piece) {
    using P = decltype(piece);
    const int64_t each = row / static_cast<int64_t>(sizeof(P)), size = rows.dim(0) * n * each;
    append_kernel<<<blocks_for(size, kCopyThreads), kCopyThreads, 0, stream>>>(
        static_cast<const P*>(rows.raw()), static_cast<P*>(cache.raw()), n, cache.dim(0) == 1 ? 0 : capacity * each, each, size,
        start_position(position));
  };
  row % 16 == 0 ? launch(uint4{}) : launch(uint16_t{});
  check_launch();
}

void copy_sequences(Stream stream, const Tensor& from, const Tensor& index, const Tensor& to, int64_t n) {
  const int64_t element = byte_size(to.dtype()), row = to.size() / to.dim(0) * element, bytes = n * element;
  const auto launch = [&](auto piece) {
    using P = decltype(piece);
    const int64_t each = bytes / static_cast<int64_t>(sizeof(P)), size = to.dim(0) * each;
    copy_sequences_kernel<<<blocks_for(size, kCopyThreads), kCopyThreads, 0, stream>>>(
        static_cast<const P*>(from.raw()), from.dim(0) == 1 ? nullptr : pointer<int32_t>(index), static_cast<P*>(to.raw()),
        row / static_cast<int64_t>(sizeof(P)), each, size);
  };
  if (n > 0) row % 16 == 0 && bytes % 16 == 0 ? launch(uint4{}) : launch(uint16_t{});
  check_launch();
}

void advance(Stream stream, const Tensor& position, int64_t n) {
  advance_kernel<<<blocks_for(position.size(), kCopyThreads), kCopyThreads, 0, stream>>>(pointer<int32_t>(position),
                                                                                         static_cast<int32_t>(n), position.size());
  check_launch();
}

template <class T>
void merge_splits(Stream stream, const CachedArgs<T>& args, int64_t batch_heads, int64_t queries, int64_t rows, const float* partial) {
  merge_kernel<<<dim3(static_cast<unsigned>(batch_heads), static_cast<unsigned>(queries)), 32 * kMergeWarps, 0, stream>>>(
      args, partial, static_cast<int>(rows));
  check_launch();
}
template void merge_splits(Stream, const CachedArgs<float>&, int64_t, int64_t, int64_t, const float*);
template void merge_splits(Stream, const CachedArgs<bf16>&, int64_t, int64_t, int64_t, const float*);

void cached_top1_element(Stream stream, const CachedTask& task, const Tensor& selected, const Tensor& scratch) {
  const int64_t batch_heads = task.shape.sequences();
  dispatch_cuda(task.v.dtype(), [&](auto t) {
    using T = decltype(t);
    in_passes(cached_args<T>(task, scratch.dim(2)), kSplitQueries, [&](const CachedArgs<T>& args, int64_t queries) {
      for_row_share<T>(task.shape.width,
                       [&](auto row) { launch_splits(stream, args, batch_heads, queries, scratch, best_kernel<decltype(row)>); });
      pick_kernel<<<dim3(static_cast<unsigned>(batch_heads), static_cast<unsigned>(queries)), 32, 0, stream>>>(
          args, pointer<float>(scratch), static_cast<int>(scratch.dim(1)), pointer<int32_t>(selected));
      check_launch();
    });
  });
}

}  // namespace saccade::cuda
