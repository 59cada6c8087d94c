// Attention to the chosen chunk and to the own chunk on Hopper, chunks of 128 keys. A block takes tiles of 128 queries and the 128 keys
// they see, so that a softmax is one pass; two warpgroups own 64 queries each, a third keeps a ring of tiles filled. First queries
// gathered by the chunk they chose, whose results go to o and lse; then queries in order, which see their own chunk and go on from there.
#include "kernels/cuda/attention/attention_hopper.cuh"
#include "kernels/ops/top1_chunk/top1_chunk_cuda.h"

namespace saccade::cuda {
namespace hopper {
namespace {

constexpr int kRows = 128, kConsumers = 2, kThreads = (kConsumers + 1) * kWarpgroup;
constexpr int kTileBytes = kRows * kRowBytes;
constexpr int kGatheredStages = 4, kGatheredTiles = 3;  // of shared memory: queries, keys, values
constexpr int kOwnStages = 3, kOwnTiles = 4;            // and what the queries have so far
constexpr int kShared = 12 * kTileBytes + 1024;
static_assert(kGatheredStages * kGatheredTiles == 12 && kOwnStages * kOwnTiles == 12);

struct Maps {
  CUtensorMap q, k, v, o;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ uint32_t tiles_of(char* memory) { return (shared_address(memory) + 1023) / 1024 * 1024; }

/// A thread's part of 64 queries' attention to a tile of keys: of its quad's row and the one eight further. o is not divided by the sum.
struct PartialAttention {
  float o[kWidth / 2];
  float max[2], sum[2];  ///< of scores · factor
};

/// Queries of the warpgroup against the first 64 kHalves keys of a tile; `causal_row`: row in the tile of the quad's first row, which
/// sees keys up to its own; −1: all.
template <int kHalves>
__device__ __forceinline__ void attend(PartialAttention& part, uint32_t queries, uint32_t keys, uint32_t values, float factor,
                                       int causal_row) {
  constexpr uint32_t kNextHalf = 64 * kRowBytes >> 4;
  const uint32_t key_rows = rows_of_64(keys), value_rows = rows_of_64(values);
  uint32_t q[kWidth / 16][4], weights[kHalves][4][4];
  float s[kHalves][32];
#pragma unroll
  for (int k = 0; k < kWidth / 16; ++k) SharedRows<kWidth>{queries}.load_a(q[k], threadIdx.x % kWarpgroup / 32 * 16, k);
  hold(q);
#pragma unroll
  for (int half = 0; half < kHalves; ++half) hold(s[half]);
  begin_products();
#pragma unroll
  for (int k = 0; k < kWidth / 16; ++k)
#pragma unroll
    for (int half = 0; half < kHalves; ++half) multiply(s[half], q[k], key_rows + half * kNextHalf + k * kNextColumns, k > 0);
  commit_products();
  finish_products<0>();
#pragma unroll
  for (int half = 0; half < kHalves; ++half) hold(s[half]);
  if (causal_row >= 0)
#pragma unroll
    for (int half = 0; half < kHalves; ++half)
#pragma unroll
      for (int i = 0; i < 32; ++i)
        if (half * 64 + i / 4 * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + i % 2 > causal_row + i % 4 / 2 * 8) s[half][i] = -INFINITY;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float top = -INFINITY, sum = 0;
#pragma unroll
    for (int half = 0; half < kHalves; ++half)
#pragma unroll
      for (int n = 0; n < 8; ++n) top = fmaxf(top, fmaxf(s[half][4 * n + 2 * i], s[half][4 * n + 2 * i + 1]));
    part.max[i] = quad_max(top) * factor;
#pragma unroll
    for (int half = 0; half < kHalves; ++half)
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[half][4 * n + 2 * i + e];
          x = exp2_approximate(x * factor - part.max[i]);
          sum += x;
        }
    part.sum[i] = quad_sum(sum);
  }
#pragma unroll
  for (int half = 0; half < kHalves; ++half) pack<32>(weights[half], s[half]);
#pragma unroll
  for (int half = 0; half < kHalves; ++half) hold(weights[half]);
  hold(part.o);
  begin_products();
#pragma unroll
  for (int k = 0; k < 4 * kHalves; ++k) multiply_transposed(part.o, weights[k / 4][k % 4], value_rows + k * kNextRows, k > 0);
  commit_products();
  finish_products<0>();
  hold(part.o);
}

/// Puts o / sum into the warp's own 16 rows of shared memory, from where every lane moves 16 bytes; lse besides. position(row of the
/// warp's) is −1 where there is no query.
template <class Position>
__device__ __forceinline__ void store(const ForwardArgs<bf16>& a, int batch_head, const PartialAttention& part,
                                      const SharedRows<kWidth>& rows, Position&& position) {
  const int lane = threadIdx.x % 32;
  __syncwarp();  // all lanes have read the queries that lay there
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float inverse = 1 / part.sum[i];
    const int row = lane / 4 + 8 * i, t = position(row);
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n)
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(rows.at(row, n) + lane % 4 * 4),
                   "r"(pack_bf16(part.o[4 * n + 2 * i] * inverse, part.o[4 * n + 2 * i + 1] * inverse))
                   : "memory");
    if (t >= 0 && lane % 4 == 0) a.lse[int64_t{batch_head} * a.p.length + t] = (part.max[i] + log2f(part.sum[i])) * kLn2;
  }
  __syncwarp();
  bf16* o = a.o + batch_head / a.p.heads * a.v_batch + batch_head % a.p.heads * a.p.width;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = 4 * i + lane / 8, piece = lane % 8, t = position(row);
    uint4 x;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(rows.at(row, piece)));
    if (t >= 0 && piece * 8 < a.p.width) *reinterpret_cast<uint4*>(o + t * a.p.stride() + piece * 8) = x;
  }
  publish_shared();  // TMA writes there next
}

/// Tiles of gathered queries, and what consumers know of them.
struct Gathered {
  RingBarriers<kGatheredStages> ring;
  int batch_head[kGatheredStages];  ///< −1: there are no more
  int position[kGatheredStages][kRows];
};

/// Some queries of a batch_head that chose a chunk.
struct QueryTile {
  int batch_head, chunk, at, count;
};
/// Tile `index` of a batch, heads first: neighbours in memory are read at the same time.
__device__ __forceinline__ QueryTile tile_of(const Pattern& p, int index) {
  const int slot = index / p.heads % p.max_tiles, batch_head = index / p.heads / p.max_tiles * p.heads + index % p.heads;
  const int32_t* tile = p.tiles + (int64_t{batch_head} * p.max_tiles + slot) * 2;
  if (tile[0] < 0) return {};
  return {batch_head, tile[0], tile[1], min(kRows, p.offsets[int64_t{batch_head} * (p.chunks + 1) + tile[0] + 1] - tile[1])};
}

/// By 128 threads, one for a query.
__device__ __forceinline__ void put(const ForwardArgs<bf16>& a, const Maps& maps, Gathered& shared, Ring<kGatheredStages>& ring,
                                    uint32_t tiles, int batch_head, int chunk, int t) {
  const int lane = threadIdx.x % 32, row = threadIdx.x, h = batch_head % a.p.heads, b = batch_head / a.p.heads;
  const uint32_t filled = ring.claim(shared.ring), queries = tiles + ring.stage() * kGatheredTiles * kTileBytes;
  shared.position[ring.stage()][row] = t;
  if (row == 0) shared.batch_head[ring.stage()] = batch_head;
  const bf16* q = a.q + b * a.q_batch + h * a.p.width;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int from = __shfl_sync(0xffffffffu, t, 4 * i + lane / 8), piece = lane % 8;
    const bool valid = from >= 0 && piece * 8 < a.p.width;
    copy_async_16(SharedRows<kWidth>{queries}.at(row / 32 * 32 + 4 * i + lane / 8, piece),
                  q + (valid ? from * a.p.stride() + piece * 8 : 0), valid);
  }
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(filled) : "memory");
  __syncwarp();
  if (row == 0) {
    arrive_expecting(filled, 2 * kTileBytes);
    copy_box(queries + kTileBytes, maps.k, filled, 0, h, chunk * kRows, a.k_batch ? b : 0);
    copy_box(queries + 2 * kTileBytes, maps.v, filled, 0, h, chunk * kRows, b);
  } else if (lane == 0) {
    arrive(filled);
  }
  ++ring.use;
}

__device__ __forceinline__ void gather(const ForwardArgs<bf16>& a, const Maps& maps, int batch_heads, Gathered& shared, uint32_t tiles) {
  const int lane = threadIdx.x % 32, count = batch_heads * a.p.max_tiles, step = static_cast<int>(gridDim.x);
  Ring<kGatheredStages> ring;
  for (int first = static_cast<int>(blockIdx.x); first < count; first += 32 * step) {
    const QueryTile mine = first + lane * step < count ? tile_of(a.p, first + lane * step) : QueryTile{};
    const auto of = [](int x, int from) { return __shfl_sync(0xffffffffu, x, from); };
    const auto position = [&](int from) {
      const int64_t list = int64_t{of(mine.batch_head, from)} * a.p.length + of(mine.at, from);
      return static_cast<int>(threadIdx.x) < of(mine.count, from) ? a.p.order[list + threadIdx.x] : -1;
    };
    unsigned left = __ballot_sync(0xffffffffu, mine.count > 0);
    int t = left ? position(__ffs(static_cast<int>(left)) - 1) : -1;
    while (left) {
      const int from = __ffs(static_cast<int>(left)) - 1;
      left &= left - 1;
      const int next = left ? position(__ffs(static_cast<int>(left)) - 1) : -1;
      put(a, maps, shared, ring, tiles, of(mine.batch_head, from), of(mine.chunk, from), t);
      t = next;
    }
  }
  const uint32_t filled = ring.claim(shared.ring);
  if (threadIdx.x == 0) shared.batch_head[ring.stage()] = -1;
  arrive(filled);
  if (lane == 0) arrive(filled);
}

__device__ __forceinline__ void attend_to_chosen(const ForwardArgs<bf16>& a, Gathered& shared, uint32_t tiles) {
  const int own = consumer() * kOwnRows, warp_rows = own + static_cast<int>(threadIdx.x) % kWarpgroup / 32 * 16;
  const float factor = a.p.scale * kLog2e;
  for (Ring<kGatheredStages> ring;; ++ring.use) {
    ring.await(shared.ring);
    const int batch_head = shared.batch_head[ring.stage()];
    if (batch_head < 0) return;
    const int* positions = shared.position[ring.stage()];
    if (positions[own] >= 0) {
      const uint32_t queries = tiles + ring.stage() * kGatheredTiles * kTileBytes;
      PartialAttention part;
      attend<2>(part, queries + own * kRowBytes, queries + kTileBytes, queries + 2 * kTileBytes, factor, -1);
      store(a, batch_head, part, {queries + warp_rows * kRowBytes}, [&](int row) { return positions[warp_rows + row]; });
    }
    ring.release(shared.ring);
  }
}

/// 128 queries in order, heads first.
struct OwnTile {
  int batch_head, first;
};
__device__ __forceinline__ OwnTile own_tile(const Pattern& p, int index) {
  return {index / p.heads / p.chunks * p.heads + index % p.heads, index / p.heads % p.chunks * kRows};
}

__device__ __forceinline__ void fetch(const ForwardArgs<bf16>& a, const Maps& maps, int batch_heads, RingBarriers<kOwnStages>& barriers,
                                      uint32_t tiles) {
  Ring<kOwnStages> ring;
  for (int index = static_cast<int>(blockIdx.x); index < batch_heads * a.p.chunks; index += static_cast<int>(gridDim.x), ++ring.use) {
    const OwnTile tile = own_tile(a.p, index);
    const int h = tile.batch_head % a.p.heads, b = tile.batch_head / a.p.heads;
    const uint32_t filled = ring.claim(barriers), queries = tiles + ring.stage() * kOwnTiles * kTileBytes;
    arrive_expecting(filled, kOwnTiles * kTileBytes);
    copy_box(queries, maps.q, filled, 0, h, tile.first, a.q_batch ? b : 0);
    copy_box(queries + kTileBytes, maps.k, filled, 0, h, tile.first, a.k_batch ? b : 0);
    copy_box(queries + 2 * kTileBytes, maps.v, filled, 0, h, tile.first, b);
    copy_box(queries + 3 * kTileBytes, maps.o, filled, 0, h, tile.first, b);
  }
}

/// Adds what a query saw in its chosen chunk: `so_far` the warp's rows of o, `lse` of the quad's two rows, −∞ where it saw nothing.
__device__ __forceinline__ void add_chosen(PartialAttention& part, const SharedRows<kWidth>& so_far, const float (&lse)[2]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (lse[i] == -INFINITY) continue;
    const float before = lse[i] * kLog2e, max = fmaxf(part.max[i], before);
    const float own = exp2_approximate(part.max[i] - max), chosen = exp2_approximate(before - max);
    part.max[i] = max;
    part.sum[i] = part.sum[i] * own + chosen;
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n) {
      __nv_bfloat162 pair;
      asm volatile("ld.shared.b32 %0, [%1];"
                   : "=r"(*reinterpret_cast<uint32_t*>(&pair))
                   : "r"(so_far.at(lane / 4 + 8 * i, n) + lane % 4 * 4));
      part.o[4 * n + 2 * i] = part.o[4 * n + 2 * i] * own + chosen * __low2float(pair);
      part.o[4 * n + 2 * i + 1] = part.o[4 * n + 2 * i + 1] * own + chosen * __high2float(pair);
    }
  }
}

__device__ __forceinline__ void attend_to_own(const ForwardArgs<bf16>& a, int batch_heads, RingBarriers<kOwnStages>& barriers,
                                              uint32_t tiles) {
  const int warpgroup = consumer(), own = warpgroup * kOwnRows, warp_rows = own + static_cast<int>(threadIdx.x) % kWarpgroup / 32 * 16;
  const int quad_row = warp_rows + static_cast<int>(threadIdx.x) % 32 / 4;
  const float factor = a.p.scale * kLog2e;
  Ring<kOwnStages> ring;
  for (int index = static_cast<int>(blockIdx.x); index < batch_heads * a.p.chunks; index += static_cast<int>(gridDim.x), ++ring.use) {
    const OwnTile tile = own_tile(a.p, index);
    float lse[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int t = tile.first + quad_row + 8 * i;
      lse[i] = t < a.p.length ? a.lse[int64_t{tile.batch_head} * a.p.length + t] : -INFINITY;
    }
    ring.await(barriers);
    const uint32_t queries = tiles + ring.stage() * kOwnTiles * kTileBytes, keys = queries + kTileBytes;
    PartialAttention part;
    if (warpgroup == 0)
      attend<1>(part, queries, keys, keys + kTileBytes, factor, quad_row);
    else
      attend<2>(part, queries + own * kRowBytes, keys, keys + kTileBytes, factor, quad_row);
    const SharedRows<kWidth> rows{keys + 2 * kTileBytes + warp_rows * kRowBytes};
    add_chosen(part, rows, lse);
    store(a, tile.batch_head, part, rows, [&](int row) {
      const int t = tile.first + warp_rows + row;
      return t < a.p.length ? t : -1;
    });
    ring.release(barriers);
  }
}

#endif

__global__ void __launch_bounds__(kThreads, 1)
    chosen_kernel(const ForwardArgs<bf16> a, const __grid_constant__ Maps maps, const int batch_heads) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ char memory[];
  __shared__ Gathered shared;
  if (threadIdx.x < kGatheredStages) {
    init_barrier(shared_address(&shared.ring.filled[threadIdx.x]), kWarpgroup + kWarpgroup / 32);
    init_barrier(shared_address(&shared.ring.emptied[threadIdx.x]), kConsumers * 4);
    publish_barriers();
  }
  __syncthreads();
  if (threadIdx.x < kWarpgroup)
    gather(a, maps, batch_heads, shared, tiles_of(memory));
  else
    attend_to_chosen(a, shared, tiles_of(memory));
#endif
}

__global__ void __launch_bounds__(kThreads, 1)
    own_kernel(const ForwardArgs<bf16> a, const __grid_constant__ Maps maps, const int batch_heads) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ char memory[];
  __shared__ RingBarriers<kOwnStages> barriers;
  if (threadIdx.x == 0) {
    barriers.init(kConsumers * 4);
    publish_barriers();
  }
  __syncthreads();
  if (threadIdx.x >= kWarpgroup)
    attend_to_own(a, batch_heads, barriers, tiles_of(memory));
  else if (threadIdx.x == 0)
    fetch(a, maps, batch_heads, barriers, tiles_of(memory));
#endif
}

}  // namespace
}  // namespace hopper

bool hopper_chunk_forward(Stream stream, const AttentionForward& in) {
  using namespace hopper;
  const AttentionTask& task = in.task;
  const HeadShape& shape = task.shape;
  const int device = in.o.device().index;
  if (!on_tensor_cores(in.v.dtype(), shape.width) || shape.width > kWidth || task.chunk != kRows || task.lists.selected.dim(3) != 1 ||
      task.options.alibi || task.options.window > 0 || !(task.options.scale > 0) || in.entropy || !available(device))
    return false;
  const Maps maps{box_map(in.q, shape, kRows), box_map(in.k, shape, kRows), box_map(in.v, shape, kRows), box_map(in.o, shape, kRows)};
  const ForwardArgs<bf16> args = forward_args<bf16>(in);
  const int batch_heads = static_cast<int>(shape.sequences());
  allow_shared(chosen_kernel, kShared);
  chosen_kernel<<<persistent_blocks(device, int64_t{batch_heads} * args.p.max_tiles), kThreads, kShared, stream>>>(args, maps, batch_heads);
  check_launch();
  allow_shared(own_kernel, kShared);
  own_kernel<<<persistent_blocks(device, int64_t{batch_heads} * args.p.chunks), kThreads, kShared, stream>>>(args, maps, batch_heads);
  check_launch();
  return true;
}

}  // namespace saccade::cuda
