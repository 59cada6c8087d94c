// Keys and values are read once, as fast as memory gives them: a block takes kBlockKeys keys of one query. A group of kLanes threads takes
// every kGroups-th of them, a few at a time with their values, and has a softmax of its own as it goes on (arXiv:1805.02867); groups are
// merged in the end, and a query's blocks by the one of them that is done last, in the order of the keys.
#include <map>
#include <type_traits>

#include "kernels/cuda/attention/cached_keys.cuh"
#include "kernels/cuda/device/dependent_launch.cuh"

namespace saccade::cuda {
namespace {

constexpr int kThreads = kSplitThreads, kWarps = kThreads / 32;
constexpr int kBlockKeys = static_cast<int>(kAttentionKeys);
constexpr int kTogether = 4;  ///< keys, and their values, that a group loads at a time
constexpr float kLog2E = 1.44269504088896340736f;

/// A thread's part of a row, as it lies in memory.
template <class Row>
struct Piece {
  using T = typename Row::Element;
  static constexpr int kVec = Row::kVectorElements, kPieces = Row::kElements / kVec;
  static constexpr bool kPairs = sizeof(T) == 2 && kVec % 2 == 0;  ///< kept as words: as numbers they would take twice the registers
  struct alignas(kVec * sizeof(T)) Vector {
    std::conditional_t<kPairs, uint32_t, T> v[kPairs ? kVec / 2 : kVec];
  };
  Vector part[kPieces];

  /// Zeros beyond the row.
  __device__ __forceinline__ void load(const T* row, int width, int lane) {
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      const int at = (p * Row::kLanes + lane) * kVec;
      part[p] = at < width ? *reinterpret_cast<const Vector*>(row + at) : Vector{};
    }
  }
  __device__ __forceinline__ float operator[](int i) const {
    if constexpr (kPairs) {
      const uint32_t word = part[i / kVec].v[i % kVec / 2];
      return __uint_as_float(i % 2 == 0 ? word << 16 : word & 0xffff0000u);
    } else {
      return to_float(part[i / kVec].v[i % kVec]);
    }
  }
};

/// Σ exp2(s − top) and Σ exp2(s − top) v of some keys; top −inf: of none.
template <int kElements>
struct Softmax {
  float top = -INFINITY, sum = 0, values[kElements] = {};

  __device__ static float weight(float top, float of) { return top == -INFINITY ? 0.0f : exp2f(top - of); }
  __device__ void merge_with_lane(int offset) {
    const float other = __shfl_xor_sync(0xffffffffu, top, offset), greatest = fmaxf(top, other);
    const float own = weight(top, greatest), theirs = weight(other, greatest);
    sum = own * sum + theirs * __shfl_xor_sync(0xffffffffu, sum, offset);
#pragma unroll
    for (int i = 0; i < kElements; ++i) values[i] = own * values[i] + theirs * __shfl_xor_sync(0xffffffffu, values[i], offset);
    top = greatest;
  }
};

/// Keys begin … end − 1 of this thread's group.
template <class Row>
struct GroupAttention {
  static constexpr int kLanes = Row::kLanes, kGroups = kThreads / kLanes, kElements = Row::kElements;
  const CachedHead<typename Row::Element>& head;
  const int end, lane, group;
  float query[kElements], slope;
  Softmax<kElements> softmax;

  __device__ GroupAttention(const CachedHead<typename Row::Element>& of, int last)
      : head(of), end(last), lane(threadIdx.x % kLanes), group(threadIdx.x / kLanes), slope(of.slope * kLog2E) {
    Row q;
    q.load(head.q, head.width, lane);
#pragma unroll
    for (int i = 0; i < kElements; ++i) query[i] = q.x[i] * head.scale * kLog2E;
  }
  __device__ int key(int base, int i) const { return base + i * kGroups + group; }

  struct Loaded {
    Piece<Row> keys[kTogether], values[kTogether];
  };
  __device__ __forceinline__ void load(int base, Loaded& x) const {
#pragma unroll
    for (int i = 0; i < kTogether; ++i) x.keys[i].load(head.k + min(key(base, i), end - 1) * head.stride, head.width, lane);
#pragma unroll
    for (int i = 0; i < kTogether; ++i) x.values[i].load(head.v + min(key(base, i), end - 1) * head.stride, head.width, lane);
  }
  __device__ __forceinline__ void add(int base, const Loaded& x) {
    float scores[kTogether], top = softmax.top;
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      float dot = 0;
#pragma unroll
      for (int e = 0; e < kElements; ++e) dot += query[e] * x.keys[i][e];
      dot = sum_of_lanes<kLanes>(dot);
      scores[i] = key(base, i) < end ? dot - slope * static_cast<float>(head.t - key(base, i)) : -INFINITY;
      top = fmaxf(top, scores[i]);
    }
    const float keep = Softmax<kElements>::weight(softmax.top, top);
    softmax.top = top, softmax.sum *= keep;
#pragma unroll
    for (int e = 0; e < kElements; ++e) softmax.values[e] *= keep;
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const float p = Softmax<kElements>::weight(scores[i], top);
      softmax.sum += p;
#pragma unroll
      for (int e = 0; e < kElements; ++e) softmax.values[e] += p * x.values[i][e];
    }
  }
  /// The next ones are on their way while some are added.
  __device__ __forceinline__ void run(int begin) {
    constexpr int kStep = kGroups * kTogether;
    Loaded even, odd;
    load(begin, even);
    for (int base = begin; base < end; base += 2 * kStep) {
      if (base + kStep < end) load(base + kStep, odd);
      add(base, even);
      if (base + 2 * kStep < end) load(base + 2 * kStep, even);
      if (base + kStep < end) add(base + kStep, odd);
    }
#pragma unroll
    for (int offset = kLanes; offset < 32; offset *= 2) softmax.merge_with_lane(offset);
  }
};

/// Of a query. What a block leaves of its keys: partial [0] = greatest score in powers of two, [1] = sum, [2 …] = values.
template <class T>
struct Blocks {
  int first, count;
  __device__ Blocks(const CachedArgs<T>& a, int t) : first(a.low(t) / kBlockKeys), count(t / kBlockKeys - first + 1) {}
};

/// Of a block's warps, into partial; or where it is the only one of its query into o.
template <class Row>
__device__ void merge_warps(const Softmax<Row::kElements>& own, int width, float* partial, typename Row::Element* o) {
  __shared__ float tops[kWarps], sums[kWarps], values[kWarps][256];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane < Row::kLanes) {
    if (lane == 0) tops[warp] = own.top, sums[warp] = own.sum;
#pragma unroll
    for (int e = 0; e < Row::kElements; ++e)
      if (const int at = Row::column(e, lane); at < width) values[warp][at] = own.values[e];
  }
  __syncthreads();
  float top = -INFINITY, sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) top = fmaxf(top, tops[w]);
#pragma unroll
  for (int w = 0; w < kWarps; ++w) sum += Softmax<1>::weight(tops[w], top) * sums[w];
  for (int i = threadIdx.x; i < width; i += kThreads) {
    float total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total += Softmax<1>::weight(tops[w], top) * values[w][i];
    if (o)
      o[i] = from_float<typename Row::Element>(total / sum);
    else
      partial[2 + i] = total;
  }
  if (!o && threadIdx.x == 0) partial[0] = top, partial[1] = sum;
}

/// Of a query's blocks, by all threads of the one that was done last: a warp takes 32 of them at a time, and the warps' sums are added in
/// their order.
template <class T>
__device__ void merge_blocks(const float* partial, int count, int width, T* o) {
  __shared__ float sums[kWarps], values[kWarps][256];
  const int row = width + 2, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float top = -INFINITY, sum = 0, acc[8] = {};
  for (int s = threadIdx.x; s < count; s += kThreads) top = fmaxf(top, __ldcg(partial + int64_t{s} * row));
  top = block_max(top);
  for (int base = 32 * warp; base < count; base += kThreads) {
    const float* own = partial + int64_t{base + lane} * row;
    const float weight = base + lane < count ? exp2f(__ldcg(own) - top) : 0.0f;
    if (base + lane < count) sum += weight * __ldcg(own + 1);
#pragma unroll 8
    for (int j = 0; j < min(32, count - base); ++j) {
      const float w = __shfl_sync(0xffffffffu, weight, j);
#pragma unroll
      for (int c = 0; c < 8; ++c)
        if (lane + 32 * c < width) acc[c] += w * __ldcg(partial + int64_t{base + j} * row + 2 + lane + 32 * c);
    }
  }
  sum = warp_sum(sum);
  if (lane == 0) sums[warp] = sum;
#pragma unroll
  for (int c = 0; c < 8; ++c)
    if (lane + 32 * c < width) values[warp][lane + 32 * c] = acc[c];
  __syncthreads();
  float all = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) all += sums[w];
  for (int i = threadIdx.x; i < width; i += kThreads) {
    float total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total += values[w][i];
    o[i] = from_float<T>(total / all);
  }
}

/// Whether this block is the last of `count` that come here; the counter is zero again then.
__device__ bool is_last(unsigned* counter, int count) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1u) + 1 == static_cast<unsigned>(count);
    if (last) *counter = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

/// Block (number among the query's blocks, batch_head, query of this pass).
template <class Row>
__global__ void __launch_bounds__(kThreads)
    attention_kernel(const CachedArgs<typename Row::Element> a, float* partial, int rows, unsigned* counters) {
  // The grid behind may begin and awaits this one. This one itself is launched behind the grid before: begun beside it, it was slower
  // (H100, 64 sequences of 2 100 tokens: 162 instead of 154 us).
  let_next_grid_begin();
  const int batch_head = blockIdx.y, r = a.from + blockIdx.z, index = blockIdx.x;
  const auto head = a.head(batch_head, r);
  const Blocks<typename Row::Element> blocks(a, head.t);
  if (index >= blocks.count) return;
  const int begin = max(a.low(head.t), (blocks.first + index) * kBlockKeys);
  GroupAttention<Row> own(head, min(head.t + 1, (blocks.first + index + 1) * kBlockKeys));
  own.run(begin);
  auto* o = a.output(batch_head, r);
  const int query = batch_head * rows + blockIdx.z;
  float* all = partial + int64_t{query} * a.splits * (a.width + 2);
  merge_warps<Row>(own.softmax, a.width, all + int64_t{index} * (a.width + 2), blocks.count == 1 ? o : nullptr);
  if (blocks.count > 1 && is_last(counters + query, blocks.count)) merge_blocks(all, blocks.count, a.width, o);
}

/// Zero before and after a launch. One launch at a time uses them: all decoding of a device goes through one stream.
unsigned* counters_of(Stream stream, int device) {
  static std::map<int, unsigned*> counters;
  unsigned*& c = counters[device];
  if (!c) {
    check(cudaMalloc(&c, kMostQueries * sizeof *c));
    check(cudaMemsetAsync(c, 0, kMostQueries * sizeof *c, stream));
  }
  return c;
}

}  // namespace

void cached_attention(Stream stream, const CachedTask& task, const Tensor& scratch) {
  unsigned* counters = counters_of(stream, task.o.device().index);
  dispatch_cuda(task.v.dtype(), [&](auto t) {
    using T = decltype(t);
    in_passes(cached_args<T>(task, scratch.dim(2)), scratch.dim(1), [&](const CachedArgs<T>& args, int64_t queries) {
      for_row_share<T>(task.shape.width, [&](auto row) {
        const dim3 grid(static_cast<unsigned>(args.splits), static_cast<unsigned>(task.shape.sequences()), static_cast<unsigned>(queries));
        attention_kernel<decltype(row)>
            <<<grid, kThreads, 0, stream>>>(args, pointer<float>(scratch), static_cast<int>(scratch.dim(1)), counters);
      });
      check_launch();
    });
  });
}

}  // namespace saccade::cuda
