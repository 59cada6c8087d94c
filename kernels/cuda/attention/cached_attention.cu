// Keys and values are read once, as fast as memory gives them. The keys that a query sees are cut into chunks; of a chunk a group of kLanes
// threads takes every kGroups-th key, a few at a time with their values, and has a softmax of its own as it goes on (arXiv:1805.02867).
// Every group merges its chunks in their order, and then the groups are merged. Where there are many queries a block takes all chunks of
// one; where there are few a block takes one chunk, and the last block of a query merges what they have left, by the same operations. So
// how many queries there are changes no bit of a result.
#include <map>
#include <type_traits>

#include "kernels/cuda/attention/cached_keys.cuh"
#include "kernels/cuda/device/dependent_launch.cuh"

namespace saccade::cuda {
namespace {

constexpr int kThreads = kSplitThreads, kWarps = kThreads / 32;
constexpr int kAdded = 2;  ///< keys of a group that its softmax takes at a time
/// Keys, and their values, that a group loads at a time. With few a thread has few registers, so that six blocks are on a multiprocessor;
/// where there are fewer blocks, each has to ask for more.
constexpr int kLoadedAlone = 2, kLoadedOfChunk = 4;
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
  /// Rounded alike wherever it stands.
  __device__ __forceinline__ void merge(const Softmax& other) {
    const float greatest = fmaxf(top, other.top), own = weight(top, greatest), theirs = weight(other.top, greatest);
    sum = __fmaf_rn(own, sum, __fmul_rn(theirs, other.sum));
#pragma unroll
    for (int i = 0; i < kElements; ++i) values[i] = __fmaf_rn(own, values[i], __fmul_rn(theirs, other.values[i]));
    top = greatest;
  }
  __device__ void merge_with_lane(int offset) {
    const float other = __shfl_xor_sync(0xffffffffu, top, offset), greatest = fmaxf(top, other);
    const float own = weight(top, greatest), theirs = weight(other, greatest);
    sum = own * sum + theirs * __shfl_xor_sync(0xffffffffu, sum, offset);
#pragma unroll
    for (int i = 0; i < kElements; ++i) values[i] = own * values[i] + theirs * __shfl_xor_sync(0xffffffffu, values[i], offset);
    top = greatest;
  }
};

/// Of a query: chunk i has keys (first + i) keys … (first + i + 1) keys − 1, as far as the query sees them. It depends on the query alone.
template <class T>
struct Chunks {
  int low, end, keys, first, count;
  __device__ Chunks(const CachedArgs<T>& a, int t) : low(a.low(t)), end(t + 1), keys(static_cast<int>(kAttentionKeys)) {
    while (int64_t{keys} * kMostChunks < end - low) keys *= 2;
    first = low / keys, count = t / keys - first + 1;
  }
  __device__ int begin(int i) const { return max(low, (first + i) * keys); }
  __device__ int stop(int i) const { return min(end, (first + i + 1) * keys); }
};

/// This thread's part of chunks that follow each other, whose last key is `all` − 1. How many keys are loaded at a time changes no bit:
/// sums are told to be fused, or not, wherever they stand.
template <class Row, int kLoaded>
struct GroupAttention {
  static_assert(kLoaded % kAdded == 0);
  static constexpr int kLanes = Row::kLanes, kGroups = kThreads / kLanes, kElements = Row::kElements;
  struct Loaded {
    Piece<Row> keys[kLoaded], values[kLoaded];
  };
  const CachedHead<typename Row::Element>& head;
  const int all, lane, group;
  float query[kElements], slope;
  Loaded even, odd;

  __device__ GroupAttention(const CachedHead<typename Row::Element>& of, int last)
      : head(of), all(last), lane(threadIdx.x % kLanes), group(threadIdx.x / kLanes), slope(of.slope * kLog2E) {
    Row q;
    q.load(head.q, head.width, lane);
#pragma unroll
    for (int i = 0; i < kElements; ++i) query[i] = q.x[i] * head.scale * kLog2E;
  }
  __device__ int key(int base, int i) const { return base + i * kGroups + group; }

  __device__ __forceinline__ void load(int base, Loaded& x) const {
#pragma unroll
    for (int i = 0; i < kLoaded; ++i) x.keys[i].load(head.k + min(key(base, i), all - 1) * head.stride, head.width, lane);
#pragma unroll
    for (int i = 0; i < kLoaded; ++i) x.values[i].load(head.v + min(key(base, i), all - 1) * head.stride, head.width, lane);
  }
  __device__ __forceinline__ void add(Softmax<kElements>& softmax, int base, int end, const Loaded& x) const {
#pragma unroll
    for (int first = 0; first < kLoaded; first += kAdded) {
      float scores[kAdded], top = softmax.top;
#pragma unroll
      for (int i = 0; i < kAdded; ++i) {
        const int at = key(base, first + i);
        float dot = 0;
#pragma unroll
        for (int e = 0; e < kElements; ++e) dot = __fmaf_rn(query[e], x.keys[first + i][e], dot);
        dot = sum_of_lanes<kLanes>(dot);
        scores[i] = at < end ? __fmaf_rn(-slope, static_cast<float>(head.t - at), dot) : -INFINITY;
        top = fmaxf(top, scores[i]);
      }
      const float keep = Softmax<kElements>::weight(softmax.top, top);
      softmax.top = top, softmax.sum = __fmul_rn(softmax.sum, keep);
#pragma unroll
      for (int e = 0; e < kElements; ++e) softmax.values[e] = __fmul_rn(softmax.values[e], keep);
#pragma unroll
      for (int i = 0; i < kAdded; ++i) {
        const float p = Softmax<kElements>::weight(scores[i], top);
        softmax.sum = __fadd_rn(softmax.sum, p);
#pragma unroll
        for (int e = 0; e < kElements; ++e) softmax.values[e] = __fmaf_rn(p, x.values[first + i][e], softmax.values[e]);
      }
    }
  }
  /// Of the keys begin … end − 1 of a chunk, the first of which have been loaded. The next ones, those of the next chunk too, are on their
  /// way while some are added.
  __device__ __forceinline__ Softmax<kElements> run(int begin, int end) {
    constexpr int kStep = kGroups * kLoaded;
    Softmax<kElements> softmax;
    for (int base = begin; base < end; base += 2 * kStep) {
      if (base + kStep < end) load(base + kStep, odd);
      add(softmax, base, end, even);
      if (const int next = min(base + 2 * kStep, end); next < all) load(next, even);
      if (base + kStep < end) add(softmax, base + kStep, end, odd);
    }
    return softmax;
  }
};

/// What a block leaves of a chunk: of each thread its softmax, a number of all threads after the other.
template <int kElements>
__device__ __forceinline__ void store(const Softmax<kElements>& own, float* partial) {
  partial += threadIdx.x;
  partial[0] = own.top, partial[kThreads] = own.sum;
#pragma unroll
  for (int e = 0; e < kElements; ++e) partial[(2 + e) * kThreads] = own.values[e];
}
template <int kElements, class Read>
__device__ __forceinline__ Softmax<kElements> stored(const float* partial, Read read) {
  Softmax<kElements> own;
  partial += threadIdx.x;
  own.top = read(partial), own.sum = read(partial + kThreads);
#pragma unroll
  for (int e = 0; e < kElements; ++e) own.values[e] = read(partial + (2 + e) * kThreads);
  return own;
}
/// All chunks of a query, one after the other. What is merged of those before waits in shared memory: as registers it would leave room
/// for fewer blocks.
template <class Row, class T>
__device__ Softmax<Row::kElements> run_chunks(GroupAttention<Row, kLoadedAlone>& group, const Chunks<T>& chunks) {
  __shared__ float before[kAttentionPartial];
  group.load(chunks.begin(0), group.even);
  Softmax<Row::kElements> own;
  for (int i = 0; i < chunks.count; ++i) {
    store(own, before);
    asm volatile("" ::: "memory");  // or the compiler keeps the numbers in registers
    const auto next = group.run(chunks.begin(i), chunks.stop(i));
    own = stored<Row::kElements>(before, [](const float* x) { return *x; });
    own.merge(next);
  }
  return own;
}
/// Of chunks 0 … count − 1 that other blocks have left, merged as run_chunks merges them.
template <int kElements>
__device__ Softmax<kElements> merge_chunks(const float* partial, int count) {
  const auto read = [](const float* x) { return __ldcg(x); };
  auto all = stored<kElements>(partial, read);
#pragma unroll 4
  for (int i = 1; i < count; ++i) all.merge(stored<kElements>(partial + int64_t{i} * kAttentionPartial, read));
  return all;
}

/// Merges the groups of a block into o.
template <class Row>
__device__ void merge_groups(Softmax<Row::kElements> own, int width, typename Row::Element* o) {
  __shared__ float tops[kWarps], sums[kWarps], values[kWarps][256];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int offset = Row::kLanes; offset < 32; offset *= 2) own.merge_with_lane(offset);
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
    o[i] = from_float<typename Row::Element>(total / sum);
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

/// Block (chunk of the query, or where kAlone 0; batch_head; query of this pass).
template <class Row, bool kAlone>
__global__ void __launch_bounds__(kThreads, kAlone && Row::kElements == Row::kVectorElements ? 6 : 1)
    attention_kernel(const CachedArgs<typename Row::Element> a, float* partial, int rows, unsigned* counters) {
  // The grid behind may begin and awaits this one. This one itself is launched behind the grid before: begun beside it, it was slower
  // (H100, 64 sequences of 2 100 tokens: 162 instead of 154 us).
  let_next_grid_begin();
  const int batch_head = blockIdx.y, r = a.from + blockIdx.z;
  const auto head = a.head(batch_head, r);
  const Chunks<typename Row::Element> chunks(a, head.t);
  Softmax<Row::kElements> own;
  if constexpr (kAlone) {
    GroupAttention<Row, kLoadedAlone> group(head, head.t + 1);
    own = run_chunks(group, chunks);
  } else {
    const int i = static_cast<int>(blockIdx.x);
    if (i >= chunks.count) return;
    GroupAttention<Row, kLoadedOfChunk> group(head, chunks.stop(i));
    group.load(chunks.begin(i), group.even);
    own = group.run(chunks.begin(i), chunks.stop(i));
    if (chunks.count > 1) {
      const int query = batch_head * rows + blockIdx.z;
      float* all = partial + int64_t{query} * a.splits * kAttentionPartial;
      store(own, all + int64_t{i} * kAttentionPartial);
      if (!is_last(counters + query, chunks.count)) return;
      own = merge_chunks<Row::kElements>(all, chunks.count);
    }
  }
  merge_groups<Row>(own, a.width, a.output(batch_head, r));
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
        using Row = decltype(row);
        const dim3 grid(static_cast<unsigned>(args.splits), static_cast<unsigned>(task.shape.sequences()), static_cast<unsigned>(queries));
        const auto kernel = args.splits == 1 ? attention_kernel<Row, true> : attention_kernel<Row, false>;
        kernel<<<grid, kThreads, 0, stream>>>(args, pointer<float>(scratch), static_cast<int>(scratch.dim(1)), counters);
      });
      check_launch();
    });
  });
}

}  // namespace saccade::cuda
