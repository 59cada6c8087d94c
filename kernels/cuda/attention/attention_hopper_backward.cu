// Backward on Hopper in one pass and without atomic sums in any order. A block owns 128 keys and goes from their own queries to the
// newest: two warpgroups make the scores of 64 keys each again from q, k and lse, and sum dk and dv in registers; a third sums dq
// (attention_hopper_query_sums.cuh); a fourth keeps a ring of tiles of q and dO filled. Work is begun with the newest keys: a block then
// comes to each tile of queries at least two tiles after the block that adds to it before, and never waits for one begun later. Products
// are queued so that the scores of the next tile, and the sums of this one, run while exponentials are made.
#include "kernels/cuda/attention/attention_hopper.h"
#include "kernels/cuda/attention/attention_hopper_query_sums.cuh"
#include "kernels/cuda/basic/head_angles.h"

namespace saccade::cuda {
namespace hopper::backward {
namespace {

/// Keys and values that a block owns, and the queries and dO it goes over.
struct BackwardMaps {
  CUtensorMap own[2], other[2];
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// One warp. Sequences of batch 1 are shared by all.
__device__ __forceinline__ void produce(const BackwardArgs<bf16>& a, const BackwardMaps& maps, const Items& items, Barriers& barriers,
                                        const Addresses& at, QueryNotes& notes) {
  const int lane = threadIdx.x;
  Ring<2> own;
  Ring<kStages> ring;
  for (int index = blockIdx.x, next = 0;; index = __shfl_sync(0xffffffffu, next, 0), ++own.use) {
    const uint32_t own_filled = own.claim(barriers.own.ring);
    if (lane == 0) barriers.own.item[own.stage()] = index < items.count() ? index : -1;
    if (index >= items.count()) {
      if (lane == 0) arrive(own_filled), items.close();
      return;
    }
    const Block block = block_of(a.p, items, index);
    const int h = block.batch_head % a.p.heads, b = block.batch_head / a.p.heads;
    const int own_batch[2] = {a.k_batch ? b : 0, b}, other_batch[2] = {a.q_batch ? b : 0, b};
    const float *lse = a.lse + int64_t{block.batch_head} * a.p.length, *delta = a.delta + int64_t{block.batch_head} * a.p.length;
    if (lane == 0) {
      arrive_expecting(own_filled, 2 * kOwnBytes);
      for (int i = 0; i < 2; ++i) copy_box(at.own[i] + own.stage() * kOwnBytes, maps.own[i], own_filled, 0, h, block.first, own_batch[i]);
    }
    for (int tile = block.tiles.low; tile <= block.tiles.high; ++tile, ++ring.use) {
      const uint32_t s = ring.stage();
      float lses[2], deltas[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int t = tile * kTile + i * 32 + lane;
        lses[i] = t < a.p.length ? lse[t] * kLog2e : INFINITY;
        deltas[i] = t < a.p.length ? delta[t] : 0.0f;
      }
      const uint32_t filled = ring.claim(barriers.tiles);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        notes.lse[s][i * 32 + QueryNotes::place(lane)] = lses[i], notes.delta[s][i * 32 + QueryNotes::place(lane)] = deltas[i];
      __syncwarp();
      if (lane == 0) {
        arrive_expecting(filled, 2 * kTileBytes);
        for (int i = 0; i < 2; ++i) copy_box(at.tiles[i] + s * kTileBytes, maps.other[i], filled, 0, h, tile * kTile, other_batch[i]);
      }
    }
    if (lane == 0) next = items.take();  // not before: others wait for items in their order
  }
}

using Scores = float[kTile / 2];
using Factor = uint32_t[4][4];

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
__device__ __forceinline__ void store_factor(uint32_t rows, const Factor& f) {
  const SharedRows<kTile> own{rows};
  const int lane = threadIdx.x % 32, row = threadIdx.x % kWarpgroup / 32 * 16 + lane % 16;
#pragma unroll
  for (int k = 0; k < kTile / 16; ++k) store_matrices(own.at(row, 2 * k + lane / 16), f[k]);
}

/// s = keys · queriesᵀ and dp = values · dOᵀ of a tile, queued one behind the other.
__device__ __forceinline__ void queue_scores(Scores& s, Scores& dp, const Factor& keys, uint32_t values, uint32_t query_tile,
                                             uint32_t output_tile) {
  hold(s), hold(dp);
  begin_products();
  const uint32_t queries = rows_of_64(query_tile), d_o = rows_of_64(output_tile);
#pragma unroll
  for (int k = 0; k < kWidth / 16; ++k) multiply(s, keys[k], queries + k * kNextColumns, k > 0);
  commit_products();
#pragma unroll
  for (int k = 0; k < kWidth / 16; ++k) multiply_shared<false>(dp, values + k * kNextColumns, d_o + k * kNextColumns, k > 0);
  commit_products();
}

/// f(index, note) for this thread's scores; `noted`: of the tile's queries, `column`: this thread's first one.
template <class F>
__device__ __forceinline__ void each_score(const float (&noted)[kTile], int column, F&& f) {
#pragma unroll
  for (int n = 0; n < kTile / 16; ++n) {
    const float4 four = *reinterpret_cast<const float4*>(&noted[n * 16 + column * 2]);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      f(8 * n + i, i % 2 == 0 ? four.x : four.y);
      f(8 * n + 4 + i, i % 2 == 0 ? four.z : four.w);
    }
  }
}

/// Where a warpgroup's scores lie: its first key, this thread's first key, the tile's first query, this thread's first one in the tile.
struct ScorePlace {
  int first_key, key, first_query, column;
};

/// s = exp(factor s − lse), 0 where the query does not see the key.
__device__ __forceinline__ void make_probabilities(Scores& s, const Pattern& p, const float (&lse)[kTile], const ScorePlace& at) {
  const float factor = p.scale * kLog2e;
  each_score(lse, at.column, [&](int i, float own) { s[i] = exp2_approximate(s[i] * factor - own); });
  const bool diagonal = at.first_query < at.first_key + kOwnRows - 1;
  const bool edge = p.window > 0 && at.first_key <= at.first_query + kTile - 1 - p.window;
  if (!diagonal && !edge) return;
#pragma unroll
  for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = at.key + i / 2 * 8, t = at.first_query + n * 8 + at.column + i % 2;
      if (key > t || (p.window > 0 && key <= t - p.window)) s[4 * n + i] = 0;
    }
}

/// dp = p ∘ (dp − delta)
__device__ __forceinline__ void differentiate_scores(Scores& dp, const Scores& p, const float (&delta)[kTile], int column) {
  each_score(delta, column, [&](int i, float own) { dp[i] = p[i] * (dp[i] - own); });
}

/// dk and dv of this thread's rows, dk rotated back.
template <bool kRotates>
__device__ __forceinline__ void store_gradients(const BackwardArgs<bf16>& a, const Angles<kRotates>& angles, int batch_head, int row,
                                                int column, Sum& dk, Sum& dv) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (row + 8 * i >= a.p.length) continue;
    const int64_t to = a.gradient(batch_head, row + 8 * i) + column;
    angles.rotate_back(a, dk, i);
    if (a.dk) store(a.dk + to, a.p.width, dk, i, a.p.scale, a.add_dk);
    if (a.dv) store(a.dv + to, a.p.width, dv, i, 1.0f, a.add_dv);
  }
}

template <bool kRotates>
__device__ __forceinline__ void consume(const BackwardArgs<bf16>& a, const Items& items, Barriers& barriers, const Addresses& at,
                                        const QueryNotes& notes) {
  const int warpgroup = consumer() - 1;
  const ElementPosition element;
  Ring<kStages> ring;
  const auto leave_slopes = [&](const Factor& ds, const Ring<kStages>& of) {
    const Ring<2> slopes{of.use};
    const uint32_t filled = slopes.claim(barriers.slopes);
    store_factor(at.slopes + slopes.stage() * kSlopeBytes + warpgroup * kOwnRows * kTile * 2, ds);
    slopes.hand_over(filled);
  };
  const auto pass_over = [&] {
    const Factor zeros = {};
    leave_slopes(zeros, ring);
    ring.await(barriers.tiles);
    ring.release(barriers.tiles);
    ++ring.use;
  };
  for (Ring<2> own_ring;; ++own_ring.use) {
    own_ring.await(barriers.own.ring);
    const int index = barriers.own.item[own_ring.stage()];
    if (index < 0) return;
    const Block block = block_of(a.p, items, index);
    const int first = block.first + warpgroup * kOwnRows, row = first + element.row;
    const TileRange seen = query_tiles<kTile>(a.p, first, kOwnRows);
    const uint32_t own_rows = own_ring.stage() * kOwnBytes + warpgroup * kOwnRows * kRowBytes, values = rows_of_64(at.own[1] + own_rows);
    Factor keys;
    load_factor(keys, at.own[0] + own_rows);
    int tile = block.tiles.low;
    for (; tile < seen.low && tile <= block.tiles.high; ++tile) pass_over();
    if (seen.high < seen.low) {
      for (; tile <= block.tiles.high; ++tile) pass_over();
      own_ring.release(barriers.own.ring);
      continue;
    }
    Scores s, dp;
    Sum dk, dv;
    Factor ds, p;
#pragma unroll
    for (int i = 0; i < kWidth / 2; ++i) dk[i] = dv[i] = 0;

    const auto queue_both = [&] {
      ring.await(barriers.tiles);
      queue_scores(s, dp, keys, values, at.tiles[0] + ring.stage() * kTileBytes, at.tiles[1] + ring.stage() * kTileBytes);
    };
    const auto queue_sums = [&](const Ring<kStages>& r) {
      hold(ds), hold(dk), hold(p), hold(dv);
      begin_products();
      queue_sum(dk, ds, at.tiles[0] + r.stage() * kTileBytes);
      queue_sum(dv, p, at.tiles[1] + r.stage() * kTileBytes);
      commit_products();
    };
    const auto exponentiate = [&] { make_probabilities(s, a.p, notes.lse[ring.stage()], {first, row, tile * kTile, element.column}); };
    const auto differentiate = [&] { differentiate_scores(dp, s, notes.delta[ring.stage()], element.column); };

    queue_both();
    finish_products<1>();
    hold(s);
    exponentiate();
    finish_products<0>();
    hold(dp);
    differentiate();
    for (++tile; tile <= seen.high; ++tile) {
      pack<kTile / 2>(ds, dp);
      pack<kTile / 2>(p, s);
      const Ring<kStages> before = ring;
      ++ring.use;
      queue_both();
      leave_slopes(ds, before);
      queue_sums(before);
      finish_products<2>();
      hold(s);
      exponentiate();
      hold(s);
      finish_products<1>();
      hold(dp);
      differentiate();
      hold(dp);
      if (tile < seen.high) Ring<kStages>{ring.use + 1}.await(barriers.tiles);
      finish_products<0>();
      hold(dk), hold(dv);
      before.release(barriers.tiles);
    }
    pack<kTile / 2>(ds, dp);
    pack<kTile / 2>(p, s);
    leave_slopes(ds, ring);
    queue_sums(ring);
    Angles<kRotates> angles;
    angles.load(a, row, element.column);
    finish_products<0>();
    hold(dk), hold(dv);
    ring.release(barriers.tiles);
    ++ring.use;
    for (; tile <= block.tiles.high; ++tile) pass_over();
    own_ring.release(barriers.own.ring);
    store_gradients(a, angles, block.batch_head, row, element.column, dk, dv);
  }
}

#endif

template <bool kRotates>
__global__ void __launch_bounds__(kThreads, 1)
    backward_kernel(const BackwardArgs<bf16> a, const __grid_constant__ BackwardMaps maps, const Items items, const QuerySums sums) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ char memory[];
  __shared__ Barriers barriers;
  __shared__ QueryNotes notes;
  const uint32_t base = (shared_address(memory) + 1023) / 1024 * 1024, tiles = base + 4 * kOwnBytes,
                 slopes = tiles + 2 * kStages * kTileBytes;
  const Addresses at{{base, base + 2 * kOwnBytes}, {tiles, tiles + kStages * kTileBytes}, slopes, slopes + 2 * kSlopeBytes};
  if (threadIdx.x == 0) {
    barriers.own.ring.init(kConsumers * 4 + 4 + kReducers), barriers.tiles.init(kConsumers * 4);
    barriers.slopes.init(4, kConsumers * 4), barriers.shares.init(1, 4);
    for (uint64_t& b : barriers.sums) init_barrier(shared_address(&b), 1);
    publish_barriers();
  }
  __syncthreads();
  if (threadIdx.x < kWarpgroup) {
    give_registers<24>();
    const uint32_t warp = threadIdx.x / 32;
    if (warp == 0) produce(a, maps, items, barriers, at, notes);
    if (warp > 0 && threadIdx.x % 32 == 0) reduce(a, items, barriers, at, sums, warp - 1);
  } else if (threadIdx.x < 2 * kWarpgroup) {
    give_registers<72>();
    sum_queries<kRotates>(a, items, barriers, at, sums);
  } else {
    take_registers<208>();
    consume<kRotates>(a, items, barriers, at, notes);
  }
#endif
}

}  // namespace
}  // namespace hopper::backward

bool hopper_backward(Stream stream, const AttentionBackward& in) {
  using namespace hopper;
  using namespace hopper::backward;
  const int device = in.v.device().index;
  if (!covers(in.task, in.v.dtype()) || in.best || !in.partial || !available(device)) return false;
  const HeadShape& shape = in.task.shape;
  const BackwardMaps maps{{box_map(in.k, shape, kRows), box_map(in.v, shape, kRows)},
                          {box_map(in.q, shape, kTile), box_map(in.d_o, shape, kTile)}};
  const Items items = items_of(stream, device, shape, kRows);
  const QuerySums sums{pointer<float>(in.partial), query_counts(in.partial), static_cast<int>((shape.length + kTile - 1) / kTile)};
  BackwardArgs<bf16> args = backward_args<bf16>(in);
  if (in.rotary_base != 0) args.angles = head_angles(stream, device, in.rotary_base, shape.width, shape.length);
  const auto kernel = args.angles ? backward_kernel<true> : backward_kernel<false>;
  allow_shared(kernel, kShared);
  kernel<<<persistent_blocks(device, items.count()), kThreads, kShared, stream>>>(args, maps, items, sums);
  check_launch();
  return true;
}

}  // namespace saccade::cuda
