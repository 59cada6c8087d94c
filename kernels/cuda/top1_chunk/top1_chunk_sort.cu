// Counting sort of queries by the chunk they chose, stable: a block counts a segment of queries, each of its warps a part of them, a block
// per list adds the counts up, then the warps put their queries in place. Only counting is left to atomics.
#include "kernels/cuda/device/device_code.cuh"
#include "kernels/ops/top1_chunk/top1_chunk_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kScanThreads = 1024, kSegment = static_cast<int>(kSortSegment), kSortWarps = 8;
constexpr int kRowsAtOnce = 8;         ///< loads under way
constexpr int kMostShared = 48 << 10;  ///< of a block's counts, one for every warp
static_assert(kSegment % (32 * kRowsAtOnce * kSortWarps) == 0);

struct Problem {
  int length, top_k, chunks, segments;
  int group_chunks, groups, block_rows, max_tiles, max_extras;
  bool keeps;  ///< warps' counts in shared memory; else a block is one warp, which counts where the sums of its segment lie
};

/// Calls f(query, chunk) for the warp's queries, 32 at a time; −1: no remote chunk.
template <class F>
__device__ void for_queries(const Problem& p, const int32_t* selected, F&& f) {
  const int list = blockIdx.y, lane = threadIdx.x % 32, own = kSegment / (static_cast<int>(blockDim.x) / 32);
  const int begin = static_cast<int>(blockIdx.x) * kSegment + static_cast<int>(threadIdx.x) / 32 * own;
  const int32_t* chosen = selected + int64_t{list / p.top_k} * p.length * p.top_k + list % p.top_k;
  for (int first = begin; first < begin + own; first += 32 * kRowsAtOnce) {
    int c[kRowsAtOnce];
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const int t = first + 32 * i + lane;
      c[i] = t < p.length ? chosen[int64_t{t} * p.top_k] : -1;
    }
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) f(first + 32 * i + lane, c[i]);
  }
}

/// The next free place of chunk c, moved on by the queries in `same`.
__device__ __forceinline__ int take(int32_t* counts, int c, unsigned same) {
  volatile int32_t* count = counts + c;
  const int before = *count;
  __syncwarp(same);
  if (__ffs(static_cast<int>(same)) - 1 == static_cast<int>(threadIdx.x) % 32) *count = before + __popc(same);
  return before;
}

extern __shared__ int32_t counts_of_warps[];

/// Those of this block's segment.
__device__ __forceinline__ int32_t* segment_counts(const Problem& p, int32_t* counts) {
  return counts + (int64_t{blockIdx.y} * p.segments + blockIdx.x) * p.chunks;
}
__device__ __forceinline__ int32_t* warp_counts(const Problem& p, int32_t* counts) {
  return p.keeps ? counts_of_warps + static_cast<int>(threadIdx.x) / 32 * p.chunks : segment_counts(p, counts);
}

/// Counts this warp's queries.
__device__ void count(const Problem& p, const int32_t* selected, int32_t* counts) {
  for (int c = static_cast<int>(threadIdx.x) % 32; c < p.chunks; c += 32) counts[c] = 0;
  __syncwarp();
  for_queries(p, selected, [&](int, int c) {
    if (c >= 0) atomicAdd(counts + c, 1);
  });
}

__global__ void count_kernel(Problem p, const int32_t* selected, int32_t* counts) {
  count(p, selected, warp_counts(p, counts));
  if (!p.keeps) return;
  __syncthreads();
  for (int c = threadIdx.x; c < p.chunks; c += blockDim.x) {
    int sum = 0;
    for (int w = 0; w < kSortWarps; ++w) sum += counts_of_warps[w * p.chunks + c];
    segment_counts(p, counts)[c] = sum;
  }
}

__global__ void place_kernel(Problem p, const int32_t* selected, int32_t* counts, int32_t* order) {
  int32_t* next = warp_counts(p, counts);
  if (p.keeps) {
    count(p, selected, next);
    __syncthreads();
    for (int c = threadIdx.x; c < p.chunks; c += blockDim.x) {
      int at = segment_counts(p, counts)[c];
      for (int w = 0; w < kSortWarps; ++w) {
        const int n = counts_of_warps[w * p.chunks + c];
        counts_of_warps[w * p.chunks + c] = at;
        at += n;
      }
    }
    __syncthreads();
  }
  for_queries(p, selected, [&](int t, int c) {
    const unsigned same = __match_any_sync(0xffffffffu, c);
    const int rank = __popc(same & ((1u << threadIdx.x % 32) - 1));
    if (c >= 0) order[int64_t{blockIdx.y} * p.length + take(next, c, same) + rank] = t;
    __syncwarp();
  });
}

/// f(segment, count) for a chunk's count in every segment, some of which are asked for at once.
template <class F>
__device__ __forceinline__ void for_segments(const Problem& p, const int32_t* counts, int chunk, F&& f) {
  for (int first = 0; first < p.segments; first += kRowsAtOnce) {
    int n[kRowsAtOnce];
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) n[i] = first + i < p.segments ? counts[int64_t{first + i} * p.chunks + chunk] : 0;
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i)
      if (first + i < p.segments) f(first + i, n[i]);
  }
}

/// Sum of x over the threads before this one, plus `carry`, which moves on by the block's sum.
__device__ int scan(int x, int& carry) {
  __shared__ int warps[kScanThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int sum = x;
#pragma unroll
  for (int step = 1; step < 32; step <<= 1) {
    const int below = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += below;
  }
  __syncthreads();
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  int before = 0, total = 0;
  for (int w = 0; w < kScanThreads / 32; ++w) {
    if (w < warp) before += warps[w];
    total += warps[w];
  }
  const int result = carry + before + sum - x;
  carry += total;
  return result;
}

/// A block per list: offsets of the chunks, where each segment's queries go, and the tiles and extras of each group.
__global__ void __launch_bounds__(kScanThreads)
    offsets_kernel(Problem p, int32_t* counts, int32_t* offsets, int32_t* tiles, int32_t* extras, int32_t* extra_offsets) {
  const int64_t list = blockIdx.x;
  counts += list * p.segments * p.chunks, offsets += list * (p.chunks + 1), extra_offsets += list * (p.groups + 1);
  tiles += list * p.max_tiles * 2;
  extras += list * p.max_extras * 2;
  for (int i = threadIdx.x; i < 2 * p.max_tiles; i += kScanThreads) tiles[i] = -1;
  for (int i = threadIdx.x; i < 2 * p.max_extras; i += kScanThreads) extras[i] = -1;
  int carry = 0;
  for (int first = 0; first < p.chunks; first += kScanThreads) {
    const int c = first + static_cast<int>(threadIdx.x);
    int total = 0;
    if (c < p.chunks) for_segments(p, counts, c, [&](int, int n) { total += n; });
    int at = scan(total, carry);
    if (c >= p.chunks) continue;
    offsets[c] = at;
    for_segments(p, counts, c, [&](int segment, int n) {
      counts[int64_t{segment} * p.chunks + c] = at;
      at += n;
    });
  }
  if (threadIdx.x == 0) offsets[p.chunks] = carry;
  __syncthreads();
  int tile_carry = 0, extra_carry = 0;
  for (int first = 0; first < p.groups; first += kScanThreads) {
    const int g = first + static_cast<int>(threadIdx.x);
    const bool inside = g < p.groups;
    const int begin = inside ? offsets[g * p.group_chunks] : 0, end = inside ? offsets[min((g + 1) * p.group_chunks, p.chunks)] : 0;
    const int n = end - begin;
    int tile = scan((n + p.block_rows - 1) / p.block_rows, tile_carry);
    int extra = scan(n > 0 ? (n - 1) / kExtraQueries : 0, extra_carry);
    if (!inside) continue;
    for (int at = begin; at < end; at += p.block_rows, ++tile) tiles[2 * tile] = g, tiles[2 * tile + 1] = at;
    extra_offsets[g] = extra;
    for (int at = begin + kExtraQueries; at < end; at += kExtraQueries, ++extra) extras[2 * extra] = g, extras[2 * extra + 1] = at;
  }
  if (threadIdx.x == 0) extra_offsets[p.groups] = extra_carry;
}

}  // namespace

void sort_queries(Stream stream, const ChunkProblem& problem, int64_t block_rows, const QueryLists& lists, const Tensor& counts) {
  const Problem p{static_cast<int>(problem.shape.length),
                  static_cast<int>(problem.options.top_k),
                  static_cast<int>(problem.chunks()),
                  static_cast<int>(counts.dim(1)),
                  static_cast<int>(group_chunks(problem.options.chunk, block_rows)),
                  static_cast<int>(lists.extra_offsets.dim(3)) - 1,
                  static_cast<int>(block_rows),
                  static_cast<int>(lists.tiles.dim(3)),
                  static_cast<int>(max_extras(problem.shape.length)),
                  problem.chunks() * 4 * kSortWarps <= kMostShared};
  const auto count = static_cast<unsigned>(counts.dim(0));
  const dim3 grid(static_cast<unsigned>(p.segments), count);
  const int warps = p.keeps ? kSortWarps : 1;
  const size_t shared = p.keeps ? static_cast<size_t>(p.chunks * warps) * 4 : 0;
  count_kernel<<<grid, 32 * warps, shared, stream>>>(p, pointer<int32_t>(lists.selected), pointer<int32_t>(counts));
  check_launch();
  offsets_kernel<<<count, kScanThreads, 0, stream>>>(p, pointer<int32_t>(counts), pointer<int32_t>(lists.offsets),
                                                     pointer<int32_t>(lists.tiles), pointer<int32_t>(lists.extras),
                                                     pointer<int32_t>(lists.extra_offsets));
  check_launch();
  place_kernel<<<grid, 32 * warps, shared, stream>>>(p, pointer<int32_t>(lists.selected), pointer<int32_t>(counts),
                                                     pointer<int32_t>(lists.order));
  check_launch();
}

}  // namespace saccade::cuda
