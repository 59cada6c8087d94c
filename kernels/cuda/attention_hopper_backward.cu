// Backward on Hopper, without atomic sums: one kernel sums dq over the keys, one sums dk and dv over the queries; both make the scores
// again from q, k and lse. A block has two warpgroups that own 64 rows each, with their own factors in registers, and a third that
// keeps a ring of tiles of the other side filled. Products are queued so that the scores of the next tile, and the sums of this
// one, run while exponentials are made.
#include "kernels/cuda/attention_hopper.cuh"
#include "kernels/cuda/attention_hopper.h"

namespace saccade::cuda {
namespace hopper {
namespace {

constexpr int kConsumers = 2, kRows = kConsumers * kOwnRows, kTile = 64, kStages = 4;
constexpr int kThreads = (kConsumers + 1) * kWarpgroup;
constexpr int kOwnBytes = kRows * kRowBytes, kTileBytes = kTile * kRowBytes;
constexpr int kShared = 2 * kOwnBytes + 2 * kStages * kTileBytes + 1024;

/// Rows that a block owns (q and dO, or k and v), and the two tensors it goes over.
struct BackwardMaps {
  CUtensorMap own[2], other[2];
};

/// lse · log2 e and mean of the queries of each stage.
struct QueryNotes {
  float lse[kStages][kTile], mean[kStages][kTile];
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

struct Barriers {
  RingBarriers<1> own;
  RingBarriers<kStages> tiles;
  int item;  // whose rows the own ones are; −1: there are no more
};

struct Addresses {
  uint32_t own[2], tiles[2];
};

struct Block {
  int line, first;
  TileRange tiles;
};
template <bool kOwnsQueries>
__device__ __forceinline__ TileRange tiles_of(const Pattern& p, int first, int count) {
  return kOwnsQueries ? key_tiles<kTile>(p, first, count) : query_tiles<kTile>(p, first, count);
}
/// The last queries, or the first keys, have the most work.
template <bool kOwnsQueries>
__device__ __forceinline__ Block block_of(const Pattern& p, const Items& items, const Item& item) {
  const int first = (kOwnsQueries ? items.blocks - 1 - item.rank : item.rank) * kRows;
  return {item.line, first, tiles_of<kOwnsQueries>(p, first, kRows)};
}

/// One warp. Sequences of batch 1 are shared by all.
template <bool kOwnsQueries>
__device__ __forceinline__ void produce(const BackwardArgs<bf16>& a, const BackwardMaps& maps, const Items& items, Barriers& barriers,
                                        const Addresses& at, QueryNotes& notes) {
  const int lane = threadIdx.x;
  Ring<1> own;
  Ring<kStages> ring;
  for (int index = blockIdx.x, next = 0;; index = __shfl_sync(0xffffffffu, next, 0), ++own.use) {
    const uint32_t own_filled = own.claim(barriers.own);
    if (lane == 0) barriers.item = index < items.count() ? index : -1;
    if (index >= items.count()) {
      if (lane == 0) arrive(own_filled), items.close();
      return;
    }
    if (lane == 0) next = items.take();
    const Block block = block_of<kOwnsQueries>(a.p, items, items.at(index));
    const int h = block.line % a.p.heads, b = block.line / a.p.heads;
    const int q_batch = a.q_batch ? b : 0, k_batch = a.k_batch ? b : 0;
    const int own_batch[2] = {kOwnsQueries ? q_batch : k_batch, b}, other_batch[2] = {kOwnsQueries ? k_batch : q_batch, b};
    const float *lse = a.lse + int64_t{block.line} * a.p.length, *mean = a.mean + int64_t{block.line} * a.p.length;
    if (lane == 0) {
      arrive_expecting(own_filled, 2 * kOwnBytes);
      for (int i = 0; i < 2; ++i) copy_box(at.own[i], maps.own[i], own_filled, 0, h, block.first, own_batch[i]);
    }
    for (int tile = block.tiles.low; tile <= block.tiles.high; ++tile, ++ring.use) {
      const uint32_t s = ring.stage();
      float lses[2], means[2];
      if constexpr (!kOwnsQueries)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int t = tile * kTile + i * 32 + lane;
          lses[i] = t < a.p.length ? lse[t] * kLog2e : INFINITY;
          means[i] = t < a.p.length ? mean[t] : 0.0f;
        }
      const uint32_t filled = ring.claim(barriers.tiles);
      if constexpr (!kOwnsQueries) {
#pragma unroll
        for (int i = 0; i < 2; ++i) notes.lse[s][i * 32 + lane] = lses[i], notes.mean[s][i * 32 + lane] = means[i];
        __syncwarp();
      }
      if (lane == 0) {
        arrive_expecting(filled, 2 * kTileBytes);
        for (int i = 0; i < 2; ++i) copy_box(at.tiles[i] + s * kTileBytes, maps.other[i], filled, 0, h, tile * kTile, other_batch[i]);
      }
    }
  }
}

using Scores = float[kTile / 2];
using Sum = float[kWidth / 2];
using Factor = uint32_t[4][4];

/// c = own · otherᵀ over the 64 columns, queued.
__device__ __forceinline__ void queue_scores(Scores& c, const Factor& own, uint32_t other) {
  const uint32_t rows = rows_of_64(other);
#pragma unroll
  for (int k = 0; k < kWidth / 16; ++k) multiply(c, own[k], rows + k * kNextColumns, k > 0);
}
/// c += weights · other over the 64 rows of a tile, queued.
__device__ __forceinline__ void queue_sum(Sum& c, const Factor& weights, uint32_t other) {
  const uint32_t rows = rows_of_64(other);
#pragma unroll
  for (int k = 0; k < kTile / 16; ++k) multiply_transposed(c, weights[k], rows + k * kNextRows, true);
}

__device__ __forceinline__ void load_factor(Factor& f, uint32_t rows) {
  const SharedRows<kWidth> own{rows};
#pragma unroll
  for (int k = 0; k < kWidth / 16; ++k) own.load_a(f[k], threadIdx.x % kWarpgroup / 32 * 16, k);
}

__device__ __forceinline__ void store(bf16* to, int width, const Sum& sum, int i, float factor, bool add) {
#pragma unroll
  for (int n = 0; n < kWidth / 8; ++n) {
    if (n * 8 >= width) return;
    auto* at = reinterpret_cast<__nv_bfloat162*>(to + n * 8);
    float x = sum[4 * n + 2 * i] * factor, y = sum[4 * n + 2 * i + 1] * factor;
    if (add) x += __low2float(*at), y += __high2float(*at);
    *at = __floats2bfloat162_rn(x, y);
  }
}

template <bool kOwnsQueries>
__device__ __forceinline__ void consume(const BackwardArgs<bf16>& a, const Items& items, Barriers& barriers, const Addresses& at,
                                        const QueryNotes& notes) {
  const int warpgroup = consumer(), lane = threadIdx.x % 32, column = lane % 4 * 2;
  const float factor = a.p.scale * kLog2e;
  Ring<kStages> ring;
  const auto pass_over = [&] {
    ring.await(barriers.tiles);
    ring.release(barriers.tiles);
    ++ring.use;
  };
  Ring<1> own_ring;
  for (;; ++own_ring.use) {
    own_ring.await(barriers.own);
    if (barriers.item < 0) return;
    const Block block = block_of<kOwnsQueries>(a.p, items, items.at(barriers.item));
    const int first = block.first + warpgroup * kOwnRows, row = first + threadIdx.x % kWarpgroup / 32 * 16 + lane / 4;
    const TileRange seen = tiles_of<kOwnsQueries>(a.p, first, kOwnRows);
    const int64_t offset = int64_t{block.line / a.p.heads} * a.p.length * a.p.stride() + block.line % a.p.heads * a.p.width + column;
    Factor own[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) load_factor(own[i], at.own[i] + warpgroup * kOwnRows * kRowBytes);
    own_ring.release(barriers.own);
    int tile = block.tiles.low;
    for (; tile < seen.low && tile <= block.tiles.high; ++tile) pass_over();
    if (seen.high < seen.low) {
      for (; tile <= block.tiles.high; ++tile) pass_over();
      continue;
    }
    float lse[2] = {INFINITY, INFINITY}, mean[2] = {0, 0};
    if constexpr (kOwnsQueries)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (row + 8 * i < a.p.length) {
          lse[i] = a.lse[int64_t{block.line} * a.p.length + row + 8 * i] * kLog2e;
          mean[i] = a.mean[int64_t{block.line} * a.p.length + row + 8 * i];
        }
    Scores s, dp;
    Sum sums[kOwnsQueries ? 1 : 2];  // dq; or dk, dv
    Factor ds, p;
#pragma unroll
    for (auto& sum : sums)
#pragma unroll
      for (float& x : sum) x = 0;

    const auto queue_both = [&](const Ring<kStages>& r) {
      r.await(barriers.tiles);
      hold(s), hold(dp);
      begin_products();
      queue_scores(s, own[0], at.tiles[0] + r.stage() * kTileBytes);
      commit_products();
      queue_scores(dp, own[1], at.tiles[1] + r.stage() * kTileBytes);
      commit_products();
    };
    const auto queue_sums = [&](const Ring<kStages>& r) {
      hold(ds);
      hold(sums[0]);
      if constexpr (!kOwnsQueries) hold(p), hold(sums[1]);
      begin_products();
      queue_sum(sums[0], ds, at.tiles[0] + r.stage() * kTileBytes);
      if constexpr (!kOwnsQueries) queue_sum(sums[1], p, at.tiles[1] + r.stage() * kTileBytes);
      commit_products();
    };
    /// f(index, note) for this thread's scores: notes of its own queries, or of those of the tile.
    const auto each_score = [&](const float(&own_notes)[2], const float(&noted)[kTile], auto&& f) {
#pragma unroll
      for (int n = 0; n < kTile / 8; ++n) {
        float2 pair = {0, 0};
        if constexpr (!kOwnsQueries) pair = *reinterpret_cast<const float2*>(&noted[n * 8 + column]);
#pragma unroll
        for (int i = 0; i < 4; ++i) f(4 * n + i, kOwnsQueries ? own_notes[i / 2] : (i % 2 == 0 ? pair.x : pair.y));
      }
    };
    /// s = exp(factor s − lse), 0 where the query does not see the key.
    const auto exponentiate = [&](int stage) {
      each_score(lse, notes.lse[stage], [&](int i, float l) { s[i] = exp2_approximate(s[i] * factor - l); });
      const int other = tile * kTile;
      const bool diagonal = kOwnsQueries ? other + kTile > first + 1 : other < first + kOwnRows - 1;
      const bool edge =
          a.p.window > 0 && (kOwnsQueries ? other <= first + kOwnRows - 1 - a.p.window : first <= other + kTile - 1 - a.p.window);
      if (!diagonal && !edge) return;
#pragma unroll
      for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int mine = row + i / 2 * 8, theirs = other + n * 8 + column + i % 2;
          const int t = kOwnsQueries ? mine : theirs, key = kOwnsQueries ? theirs : mine;
          if (key > t || (a.p.window > 0 && key <= t - a.p.window)) s[4 * n + i] = 0;
        }
    };
    /// dp = p ∘ (dp − mean)
    const auto differentiate = [&](int stage) { each_score(mean, notes.mean[stage], [&](int i, float m) { dp[i] = s[i] * (dp[i] - m); }); };

    queue_both(ring);
    finish_products<1>();
    hold(s);
    exponentiate(ring.stage());
    finish_products<0>();
    hold(dp);
    differentiate(ring.stage());
    for (++tile; tile <= seen.high; ++tile) {
      pack<kTile / 2>(ds, dp);
      if constexpr (!kOwnsQueries) pack<kTile / 2>(p, s);
      const Ring<kStages> before = ring;
      ++ring.use;
      queue_both(ring);
      queue_sums(before);
      finish_products<2>();
      hold(s);
      exponentiate(ring.stage());
      finish_products<1>();
      hold(dp);
      differentiate(ring.stage());
      finish_products<0>();
      hold(sums[0]);
      if constexpr (!kOwnsQueries) hold(sums[1]);
      before.release(barriers.tiles);
    }
    pack<kTile / 2>(ds, dp);
    if constexpr (!kOwnsQueries) pack<kTile / 2>(p, s);
    queue_sums(ring);
    finish_products<0>();
    hold(sums[0]);
    if constexpr (!kOwnsQueries) hold(sums[1]);
    ring.release(barriers.tiles);
    ++ring.use;
    for (; tile <= block.tiles.high; ++tile) pass_over();

#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (row + 8 * i >= a.p.length) continue;
      const int64_t to = offset + (row + 8 * i) * a.p.stride();
      if constexpr (kOwnsQueries) {
        store(a.dq + to, a.p.width, sums[0], i, a.p.scale, a.add_dq);
      } else {
        if (a.dk) store(a.dk + to, a.p.width, sums[0], i, a.p.scale, a.add_dk);
        if (a.dv) store(a.dv + to, a.p.width, sums[1], i, 1.0f, a.add_dv);
      }
    }
  }
}

#endif

template <bool kOwnsQueries>
__global__ void __launch_bounds__(kThreads, 1)
    backward_kernel(const BackwardArgs<bf16> a, const __grid_constant__ BackwardMaps maps, const Items items) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ char memory[];
  __shared__ Barriers barriers;
  __shared__ QueryNotes notes;
  const uint32_t base = (shared_address(memory) + 1023) / 1024 * 1024, tiles = base + 2 * kOwnBytes;
  const Addresses at{{base, base + kOwnBytes}, {tiles, tiles + kStages * kTileBytes}};
  if (threadIdx.x == 0) {
    constexpr int kReleases = kConsumers * 4;
    barriers.own.init(kReleases), barriers.tiles.init(kReleases);
    publish_barriers();
  }
  __syncthreads();
  if (threadIdx.x < kWarpgroup) {
    give_registers<24>();
    if (threadIdx.x < 32) produce<kOwnsQueries>(a, maps, items, barriers, at, notes);
  } else {
    take_registers<240>();
    consume<kOwnsQueries>(a, items, barriers, at, notes);
  }
#endif
}

template <bool kOwnsQueries>
void launch(Stream stream, const AttentionBackward& in) {
  const HeadShape& shape = in.task.shape;
  const auto maps_of = [&](const Tensor& x, const Tensor& y, int rows, CUtensorMap(&to)[2]) {
    to[0] = box_map(x, shape, rows), to[1] = box_map(y, shape, rows);
  };
  BackwardMaps maps;
  maps_of(in.q, in.d_o, kOwnsQueries ? kRows : kTile, kOwnsQueries ? maps.own : maps.other);
  maps_of(in.k, in.v, kOwnsQueries ? kTile : kRows, kOwnsQueries ? maps.other : maps.own);
  const int device = in.v.device().index;
  const Items items = items_of(stream, device, shape, kRows);
  allow_shared(backward_kernel<kOwnsQueries>, kShared);
  backward_kernel<kOwnsQueries>
      <<<persistent_blocks(device, items.count()), kThreads, kShared, stream>>>(backward_args<bf16>(in), maps, items);
  check_launch();
}

}  // namespace
}  // namespace hopper

bool hopper_backward(Stream stream, const AttentionBackward& in) {
  if (!hopper::covers(in.task, in.v.dtype()) || in.best || !hopper::available(in.v.device().index)) return false;
  if (in.dq) hopper::launch<true>(stream, in);
  if (in.dk || in.dv) hopper::launch<false>(stream, in);
  return true;
}

}  // namespace saccade::cuda
