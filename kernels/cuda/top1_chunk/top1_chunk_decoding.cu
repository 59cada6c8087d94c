// A step: scores of the candidate chunks (mean keys, or log masses in one pass over the keys), the choice, attention to the chosen
// chunks and the own one in splits of kChunkSplitKeys, and the merge.
#include "kernels/ops/top1_chunk/top1_chunk_decoding_cuda.h"

#include "kernels/cuda/attention/cached_keys.cuh"
#include "kernels/cuda/top1_chunk/chunk_controls.cuh"
#include "kernels/cuda/top1_chunk/chunk_mean.cuh"

namespace saccade::cuda {
namespace {

constexpr int kSelectThreads = 128, kMeansOfBlock = 64;

/// Block (which of the chunks that may have become complete, columns, sequence).
template <int kPiece, class T>
__global__ void __launch_bounds__(kMeanThreads)
    extend_means_kernel(const T* k, T* means, int64_t row, int64_t capacity, int64_t chunk, int64_t n, StartPosition start) {
  const int64_t b = blockIdx.z, first = start(b), c = first / chunk + blockIdx.x;
  if ((c + 1) * chunk > first + n) return;
  mean_of_rows<kPiece>(k + (b * capacity + c * chunk) * row, row, chunk, means + (b * (capacity / chunk) + c) * row);
}

struct ChunkArgs {
  int chunk, top_k, candidates_most;  ///< capacity / chunk
  bool shared, scored, drawn;
  Random random;
  int32_t* selected;  ///< [B · H, n, top_k]
};

template <class T>
__device__ float* scores_of(const CachedArgs<T>&, const ChunkArgs& c, float* scores, int batch_head, int row, int rows) {
  return scores + (int64_t{batch_head} * rows + row) * c.candidates_most;
}

/// Block (64 candidates, batch_head, query of this pass).
template <class Row>
__global__ void __launch_bounds__(kSplitThreads) mean_scores_kernel(const CachedArgs<typename Row::Element> a, const ChunkArgs c,
                                                                    const typename Row::Element* means, float* scores, int rows) {
  __shared__ float s[kMeansOfBlock];
  auto head = a.head(blockIdx.y, a.from + blockIdx.z);
  const int begin = blockIdx.x * kMeansOfBlock, count = min(kMeansOfBlock, head.t / c.chunk - begin), b = blockIdx.y / a.heads;
  if (count <= 0) return;
  head.k = means + (a.k_batch == 0 ? 0 : int64_t{b} * c.candidates_most * a.stride()) + blockIdx.y % a.heads * a.width;
  const float slope = head.slope;
  head.slope = 0;  // of the chunk, not of the row of its mean
  score_keys<Row>(head, begin, count, s);
  float* out = scores_of(a, c, scores, blockIdx.y, blockIdx.z, rows);
  for (int i = threadIdx.x; i < count; i += kSplitThreads)
    out[begin + i] = s[i] - slope * (static_cast<float>(head.t) - mean_position(begin + i, c.chunk));
}

/// A warp per candidate: block (candidates, batch_head, query of this pass).
template <class Row>
__global__ void __launch_bounds__(kSplitThreads)
    mass_scores_kernel(const CachedArgs<typename Row::Element> a, const ChunkArgs c, float* scores, int rows) {
  constexpr int kGroups = 32 / Row::kLanes;
  const auto head = a.head(blockIdx.y, a.from + blockIdx.z);
  const int chosen = blockIdx.x * (kSplitThreads / 32) + threadIdx.x / 32, lane = threadIdx.x % Row::kLanes;
  const int begin = chosen * c.chunk, low = a.low(head.t);
  if (chosen >= head.t / c.chunk) return;
  Row query;
  query.load(head.q, head.width, lane);
  float max = -INFINITY, sum = 0;
  each_row<Row, kGroups>(head.k + begin * head.stride, head.stride, head.width, c.chunk, [&](int j, const Row& key) {
    const float dot = query.dot(key), s = j < c.chunk && begin + j >= low ? head.score(dot, begin + j) : -INFINITY;
    const float top = fmaxf(max, s), shift = top == -INFINITY ? 0.0f : top;
    sum = sum * expf(max - shift) + expf(s - shift);
    max = top;
  });
#pragma unroll
  for (int step = Row::kLanes; step < 32; step *= 2) {
    const float other_max = __shfl_xor_sync(0xffffffffu, max, step), other_sum = __shfl_xor_sync(0xffffffffu, sum, step);
    const float top = fmaxf(max, other_max), shift = top == -INFINITY ? 0.0f : top;
    sum = sum * expf(max - shift) + other_sum * expf(other_max - shift);
    max = top;
  }
  if (threadIdx.x % 32 == 0) scores_of(a, c, scores, blockIdx.y, blockIdx.z, rows)[chosen] = max == -INFINITY ? -INFINITY : max + logf(sum);
}

/// Whether candidate (s, c) comes before (best, at): the greater score, then the smaller chunk; at −1: none yet.
__device__ __forceinline__ bool comes_before(float s, int c, float best, int at) {
  return c >= 0 && (at < 0 || s > best || (s == best && c < at));
}

/// A block per (batch_head, query), or per (sequence, query) where heads choose together: the best candidates, one after the other.
template <class T>
__global__ void __launch_bounds__(kSelectThreads) choose_kernel(const CachedArgs<T> a, const ChunkArgs c, float* scores, int rows) {
  __shared__ float best_of[kSelectThreads / 32];
  __shared__ int chunk_of[kSelectThreads / 32];
  __shared__ int32_t chosen[256];
  const int together = c.shared ? a.heads : 1, batch_head = blockIdx.x * together, r = a.from + blockIdx.y;
  const int t = static_cast<int>(a.start(batch_head / a.heads)) + r, candidates = t / c.chunk;
  if (!c.scored) {
    if (threadIdx.x == 0)
      take_control(c.random, c.drawn, c.top_k, a.start.differs ? batch_head % a.heads : batch_head, t, candidates, chosen);
    __syncthreads();
  }
  for (int slot = 0; c.scored && slot < c.top_k; ++slot) {
    float best = -INFINITY;
    int at = -1;
    for (int i = threadIdx.x; i < candidates; i += kSelectThreads) {
      bool taken = false;
      for (int earlier = 0; earlier < slot; ++earlier) taken = taken || chosen[earlier] == i;
      if (taken) continue;
      float s = 0;
      for (int h = 0; h < together; ++h) s += scores_of(a, c, scores, batch_head + h, blockIdx.y, rows)[i];
      if (comes_before(s, i, best, at)) best = s, at = i;
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      const float s = __shfl_xor_sync(0xffffffffu, best, step);
      const int i = __shfl_xor_sync(0xffffffffu, at, step);
      if (comes_before(s, i, best, at)) best = s, at = i;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) best_of[threadIdx.x / 32] = best, chunk_of[threadIdx.x / 32] = at;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int w = 1; w < kSelectThreads / 32; ++w)
        if (comes_before(best_of[w], chunk_of[w], best, at)) best = best_of[w], at = chunk_of[w];
      chosen[slot] = at;
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < together * c.top_k; i += kSelectThreads)
    c.selected[(int64_t{batch_head + i / c.top_k} * a.n + r) * c.top_k + i % c.top_k] = chosen[i % c.top_k];
}

/// Block (split, batch_head, query of this pass): the splits of the chosen chunks, then those of the own one.
template <class Row>
__global__ void __launch_bounds__(kSplitThreads)
    attend_kernel(const CachedArgs<typename Row::Element> a, const ChunkArgs c, float* partial, int rows) {
  const int r = a.from + blockIdx.z, pieces = a.splits / (c.top_k + 1), slot = blockIdx.x / pieces, piece = blockIdx.x % pieces;
  const auto head = a.head(blockIdx.y, r);
  const int chunk = slot < c.top_k ? c.selected[(int64_t{blockIdx.y} * a.n + r) * c.top_k + slot] : head.t / c.chunk;
  const int begin = max(a.low(head.t), chunk * c.chunk + piece * int{kChunkSplitKeys});
  const int end = min(head.t + 1, chunk * c.chunk + min(c.chunk, (piece + 1) * int{kChunkSplitKeys}));
  attend_split<Row>(head, begin, chunk < 0 ? 0 : end - begin,
                    partial + ((int64_t{blockIdx.y} * rows + blockIdx.z) * a.splits + blockIdx.x) * (a.width + 2));
}

}  // namespace

void extend_mean_keys(Stream stream, const Tensor& k, const Tensor& means, int64_t chunk, const TokenPosition& position, int64_t n) {
  const int64_t row = k.dim(2) * k.dim(3);
  dispatch_cuda(k.dtype(), [&](auto t) {
    using T = decltype(t);
    for_mean_piece<T>(row, [&](auto piece) {
      constexpr int kPiece = decltype(piece)::value;
      const dim3 grid(static_cast<unsigned>(n / chunk + 1), blocks_for(row, kMeanColumns<kPiece>), static_cast<unsigned>(k.dim(0)));
      extend_means_kernel<kPiece>
          <<<grid, kMeanThreads, 0, stream>>>(pointer<T>(k), pointer<T>(means), row, k.dim(1), chunk, n, start_position(position));
    });
  });
  check_launch();
}

void cached_top1_chunk(Stream stream, const CachedTask& task, const ChunkOptions& options, const Tensor& means, const Tensor& selected,
                       const ChunkScratch& scratch) {
  const HeadShape& shape = task.shape;
  const int64_t batch_heads = shape.sequences(), rows = scratch.partial.dim(1), most = task.v.dim(1) / options.chunk;
  const bool scored = static_cast<bool>(scratch.scores);
  const ChunkArgs chunks{static_cast<int>(options.chunk),
                         static_cast<int>(options.top_k),
                         static_cast<int>(std::max<int64_t>(1, most)),
                         options.share_selection,
                         scored,
                         options.selection == ChunkSelection::random,
                         Random(options.seed, "top1_chunk.random"),
                         pointer<int32_t>(selected)};
  float *scores = scored ? pointer<float>(scratch.scores) : nullptr, *partial = pointer<float>(scratch.partial);
  dispatch_cuda(task.v.dtype(), [&](auto t) {
    using T = decltype(t);
    in_passes(cached_args<T>(task, scratch.partial.dim(2)), kSplitQueries, [&](const CachedArgs<T>& args, int64_t queries) {
      const auto grid = [&](int64_t x, int64_t y) {
        return dim3(static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(queries));
      };
      for_row_share<T>(shape.width, [&](auto share) {
        using Row = decltype(share);
        if (scored && most > 0 && means)
          mean_scores_kernel<Row><<<grid(blocks_for(most, kMeansOfBlock), batch_heads), kSplitThreads, 0, stream>>>(
              args, chunks, pointer<T>(means), scores, static_cast<int>(rows));
        if (scored && most > 0 && !means)
          mass_scores_kernel<Row><<<grid(blocks_for(most, kSplitThreads / 32), batch_heads), kSplitThreads, 0, stream>>>(
              args, chunks, scores, static_cast<int>(rows));
        check_launch();
        const int64_t choosing = options.share_selection ? shape.batch : batch_heads;
        choose_kernel<<<dim3(static_cast<unsigned>(choosing), static_cast<unsigned>(queries)), kSelectThreads, 0, stream>>>(
            args, chunks, scores, static_cast<int>(rows));
        check_launch();
        attend_kernel<Row><<<grid(args.splits, batch_heads), kSplitThreads, 0, stream>>>(args, chunks, partial, static_cast<int>(rows));
        check_launch();
      });
      merge_splits(stream, args, batch_heads, queries, rows, partial);
    });
  });
}

}  // namespace saccade::cuda
