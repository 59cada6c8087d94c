// Selection on Hopper: blocks of 192 queries, three warpgroups own 64 of them each and go over the keys, or the mean keys, from the oldest
// on; a fourth keeps a ring of them filled. Exponentials, one for every query and key, bound the exact one, not products.
#include "kernels/cuda/attention/attention_hopper.cuh"
#include "kernels/ops/top1_chunk/top1_chunk_cuda.h"

namespace saccade::cuda {
namespace hopper {
namespace {

constexpr int kConsumers = 3, kRows = kConsumers * kOwnRows, kKeys = 128, kStages = 6;
constexpr int kPart = 64;  ///< keys that are summed at a time: chunks begin and end between parts, and 64 queries share theirs
constexpr int kThreads = (kConsumers + 1) * kWarpgroup;
constexpr int kTileBytes = kKeys * kRowBytes, kQueryBytes = kRows * kRowBytes;
constexpr int kShared = 2 * kQueryBytes + kStages * kTileBytes + 1024;

struct Problem {
  int length, heads, chunk;
  int rows_of_chunk;        ///< rows of k: its keys, or 1, its mean
  float factor;             ///< scale · log2 e
  bool q_shared, k_shared;  ///< one sequence stands for all
};

struct Maps {
  CUtensorMap q, k;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

struct Barriers {
  OwnRows queries;
  RingBarriers<kStages> keys;
};

/// Rows of k before it belong to candidates of the 64 queries from `first` on, which share their own chunk.
__device__ __forceinline__ int candidate_rows(const Problem& p, int first) {
  return first < p.length ? first / p.chunk * p.rows_of_chunk : 0;
}

struct Block {
  int batch_head, first, tiles;
};
__device__ __forceinline__ Block block_of(const Problem& p, const Items& items, const Item& item) {
  const int first = (items.blocks - 1 - item.rank) * kRows, last = (min(first + kRows, p.length) - 1) / kOwnRows * kOwnRows;
  return {item.batch_head, first, (candidate_rows(p, last) + kKeys - 1) / kKeys};
}

__device__ __forceinline__ void produce(const Problem& p, const Maps& maps, const Items& items, Barriers& barriers, uint32_t queries,
                                        uint32_t keys) {
  Ring<kStages> ring;
  for_items(items, barriers.queries, kQueryBytes, [&](const Item& item, uint32_t stage, uint32_t queries_filled) {
    const Block block = block_of(p, items, item);
    const int h = block.batch_head % p.heads, b = block.batch_head / p.heads;
    copy_box(queries + stage * kQueryBytes, maps.q, queries_filled, 0, h, block.first, p.q_shared ? 0 : b);
    for (int tile = 0; tile < block.tiles; ++tile, ++ring.use) {
      const uint32_t keys_filled = ring.claim(barriers.keys);
      arrive_expecting(keys_filled, kTileBytes);
      copy_box(keys + ring.stage() * kTileBytes, maps.k, keys_filled, 0, h, tile * kKeys, p.k_shared ? 0 : b);
    }
  });
}

/// Σ 2^(factor · score − shift) over this thread's scores of a part, those of row i.
template <int kFirst>
__device__ __forceinline__ float sum_part(const float (&s)[kKeys / 2], int i, float factor, float shift) {
  float sums[2] = {0, 0};
#pragma unroll
  for (int n = kFirst / 8; n < (kFirst + kPart) / 8; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e) sums[e] += exp2_approximate(s[4 * n + 2 * i + e] * factor - shift);
  return sums[0] + sums[1];
}

/// Log mass of a query's chunks, all relative to one shift: Σ 2^(s − shift) of the chunk at hand (this thread's share) and of the
/// best so far. The shift is raised (rarely) when a sum leaves the range of floats.
struct Mass {
  float shift, pending, best;
  int chosen;
};

/// Adds keys [key, key + kPart), the ones from kFirst on in the tile.
template <int kFirst>
__device__ __forceinline__ void add_part(const Problem& p, const float (&s)[kKeys / 2], Mass (&mass)[2], int key) {
  constexpr float kLimit = 1e30f;
  const bool completes = (key + kPart) % p.chunk == 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    Mass& x = mass[i];
    float sum = sum_part<kFirst>(s, i, p.factor, x.shift);
    if (__any_sync(0xffffffffu, !(sum < kLimit))) {
      float top = s[4 * (kFirst / 8) + 2 * i];
#pragma unroll
      for (int n = kFirst / 8; n < (kFirst + kPart) / 8; ++n) top = fmaxf(top, fmaxf(s[4 * n + 2 * i], s[4 * n + 2 * i + 1]));
      const float raised = fmaxf(x.shift, quad_max(top) * p.factor), scale = exp2_approximate(x.shift - raised);
      x.shift = raised, x.pending *= scale, x.best *= scale;
      sum = sum_part<kFirst>(s, i, p.factor, raised);
    }
    x.pending += sum;
    if (!completes) continue;
    const float total = quad_sum(x.pending);
    if (total > x.best) x.best = total, x.chosen = key / p.chunk;
    x.pending = 0;
  }
}

/// By log mass.
struct ByMass {
  Mass mass[2] = {{-INFINITY, 0, 0, -1}, {-INFINITY, 0, 0, -1}};
  __device__ __forceinline__ void add(const Problem& p, const float (&s)[kKeys / 2], int key, int end) {
    add_part<0>(p, s, mass, key);
    if (key + kPart < end) add_part<kPart>(p, s, mass, key + kPart);
  }
  __device__ __forceinline__ int chosen(int i) const { return mass[i].chosen; }
};

/// By mean key: this thread's share of the candidates, the first of equals.
struct ByMean {
  float best[2] = {-INFINITY, -INFINITY};
  int chunk[2] = {-1, -1};
  template <bool kAll>
  __device__ __forceinline__ void offer(const float (&s)[kKeys / 2], int first, int end) {
    first += threadIdx.x % 4 * 2;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int c = first + 8 * n + i % 2;
        if ((kAll || c < end) && s[4 * n + i] > best[i / 2]) best[i / 2] = s[4 * n + i], chunk[i / 2] = c;
      }
  }
  __device__ __forceinline__ void add(const Problem&, const float (&s)[kKeys / 2], int first, int end) {
    first + kKeys <= end ? offer<true>(s, first, end) : offer<false>(s, first, end);
  }
  __device__ __forceinline__ int chosen(int i) const {
    float most = best[i];
    int c = chunk[i];
#pragma unroll
    for (int step = 1; step < 4; step <<= 1) {
      const float other = __shfl_xor_sync(0xffffffffu, most, step);
      const int of_other = __shfl_xor_sync(0xffffffffu, c, step);
      if (other > most || (other == most && of_other < c)) most = other, c = of_other;
    }
    return c;
  }
};

template <class Choice>
__device__ __forceinline__ void consume(const Problem& p, const Items& items, Barriers& barriers, uint32_t queries, uint32_t keys,
                                        int32_t* selected) {
  const int warpgroup = consumer(), lane = threadIdx.x % 32;
  Ring<2> query;
  Ring<kStages> ring;
  for (;; ++query.use) {
    query.await(barriers.queries.ring);
    const int index = barriers.queries.item[query.stage()];
    if (index < 0) return;
    const Block block = block_of(p, items, items.at(index));
    const int own = block.first + warpgroup * kOwnRows, end = candidate_rows(p, own);
    const uint32_t query_rows = rows_of_64(queries + query.stage() * kQueryBytes + warpgroup * kOwnRows * kRowBytes);
    Choice choice;
    for (int tile = 0; tile < block.tiles; ++tile, ++ring.use) {
      const int key = tile * kKeys;
      ring.await(barriers.keys);
      float s[kKeys / 2];
      if (key < end) {
        const uint32_t key_rows = rows_of_64(keys + ring.stage() * kTileBytes);
        hold(s);
        begin_products();
#pragma unroll
        for (int k = 0; k < kWidth / 16; ++k) multiply(s, query_rows + k * kNextColumns, key_rows + k * kNextColumns, k > 0);
        commit_products();
        finish_products<0>();
        hold(s);
      }
      ring.release(barriers.keys);
      if (key < end) choice.add(p, s, key, end);
    }
    query.release(barriers.queries.ring);
    const int t = own + threadIdx.x % kWarpgroup / 32 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int chosen = choice.chosen(i);
      if (lane % 4 == 0 && t + 8 * i < p.length) selected[int64_t{block.batch_head} * p.length + t + 8 * i] = chosen;
    }
  }
}

#else
struct ByMass;
struct ByMean;
#endif

template <class Choice>
__global__ void __launch_bounds__(kThreads, 1)
    select_kernel(const Problem p, const __grid_constant__ Maps maps, const Items items, int32_t* selected) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ char memory[];
  __shared__ Barriers barriers;
  const uint32_t queries = (shared_address(memory) + 1023) / 1024 * 1024, keys = queries + 2 * kQueryBytes;
  if (threadIdx.x == 0) {
    constexpr int kReleases = kConsumers * 4;
    barriers.queries.ring.init(kReleases), barriers.keys.init(kReleases);
    publish_barriers();
  }
  __syncthreads();
  if (threadIdx.x < kWarpgroup) {
    give_registers<32>();
    if (threadIdx.x == 0) produce(p, maps, items, barriers, queries, keys);
  } else {
    take_registers<160>();
    consume<Choice>(p, items, barriers, queries, keys, selected);
  }
#endif
}

}  // namespace
}  // namespace hopper

bool hopper_select(Stream stream, const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& means,
                   const Tensor& selected) {
  using namespace hopper;
  const HeadShape& shape = problem.shape;
  const int device = q.device().index;
  if (problem.options.chunk % kPart != 0 || !covers({shape, problem.score}, q.dtype()) || !available(device)) return false;
  const auto shared = [&](const Tensor& x) { return x.dim(0) == 1; };
  const Problem p{static_cast<int>(shape.length),
                  static_cast<int>(shape.heads),
                  static_cast<int>(problem.options.chunk),
                  static_cast<int>(means ? 1 : problem.options.chunk),
                  static_cast<float>(problem.score.scale) * kLog2e,
                  shared(q),
                  shared(k)};
  HeadShape rows = shape;
  if (means) rows.length = means.dim(1);
  const Maps maps{box_map(q, shape, kRows), box_map(means ? means : k, rows, kKeys)};
  const Items items = items_of(stream, device, shape, kRows);
  const auto kernel = means ? select_kernel<ByMean> : select_kernel<ByMass>;
  allow_shared(kernel, kShared);
  kernel<<<persistent_blocks(device, items.count()), kThreads, kShared, stream>>>(p, maps, items, pointer<int32_t>(selected));
  check_launch();
  return true;
}

}  // namespace saccade::cuda
