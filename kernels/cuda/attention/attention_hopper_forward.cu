// Forward on Hopper: blocks of 192 queries, three warpgroups own 64 of them each. A fourth keeps rings of keys and values filled.
// Each warpgroup goes from the diagonal to the oldest key; while it exponentiates the scores of a tile, the product of the weights
// before with their values runs (FlashAttention-3, Shah et al. 2024, section 3).
#include "kernels/cuda/attention/attention_hopper.cuh"
#include "kernels/cuda/attention/attention_hopper.h"

namespace saccade::cuda {
namespace hopper {
namespace {

constexpr int kConsumers = 3, kRows = kConsumers * kOwnRows, kKeys = 128, kStages = 4;
constexpr int kThreads = (kConsumers + 1) * kWarpgroup;
constexpr int kTileBytes = kKeys * kRowBytes, kQueryBytes = kRows * kRowBytes;
constexpr int kShared = 2 * kQueryBytes + 2 * kStages * kTileBytes + 1024;

struct ForwardMaps {
  CUtensorMap q, k, v;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

struct Barriers {
  OwnRows queries;
  RingBarriers<kStages> keys, values;
};

/// From the end of the sequence on: what is left of a block, before position 0, is where there is least to do. Rows of a warpgroup begin
/// at multiples of kOwnRows: each sees a key of the first tile that any of them sees.
struct Block {
  int batch_head, first;
  TileRange tiles;
};
__device__ __forceinline__ Block block_of(const Pattern& p, const Item& item) {
  const int first = (p.length + kOwnRows - 1) / kOwnRows * kOwnRows - (item.rank + 1) * kRows;
  return {item.batch_head, first, key_tiles<kKeys>(p, first, kRows)};
}

__device__ __forceinline__ void produce(const ForwardArgs<bf16>& a, const ForwardMaps& maps, const Items& items, Barriers& barriers,
                                        uint32_t queries, uint32_t keys, uint32_t values) {
  Ring<kStages> ring;
  for_items(items, barriers.queries, kQueryBytes, [&](const Item& item, uint32_t stage, uint32_t queries_filled) {
    const Block block = block_of(a.p, item);
    const int h = block.batch_head % a.p.heads, b = block.batch_head / a.p.heads;
    copy_box(queries + stage * kQueryBytes, maps.q, queries_filled, 0, h, block.first, a.q_batch ? b : 0);
    for (int tile = block.tiles.high; tile >= block.tiles.low; --tile, ++ring.use) {
      const uint32_t keys_filled = ring.claim(barriers.keys);
      arrive_expecting(keys_filled, kTileBytes);
      copy_box(keys + ring.stage() * kTileBytes, maps.k, keys_filled, 0, h, tile * kKeys, a.k_batch ? b : 0);
      const uint32_t values_filled = ring.claim(barriers.values);
      arrive_expecting(values_filled, kTileBytes);
      copy_box(values + ring.stage() * kTileBytes, maps.v, values_filled, 0, h, tile * kKeys, b);
    }
  });
}

/// Two rows of scores that a thread holds: of its quad's row and the one eight further.
struct RowStatistics {
  float max[2], sum[2], correction[2];
};

/// Scores of one tile to exp(factor · (s − maximum so far)), and how much earlier sums shrink.
template <bool kFirst>
__device__ __forceinline__ void exponentiate(float (&s)[kKeys / 2], RowStatistics& rows, float factor) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float top = kFirst ? -INFINITY : rows.max[i];
    float tops[2] = {fmaxf(top, s[2 * i]), s[2 * i + 1]};
#pragma unroll
    for (int n = 1; n < kKeys / 8; ++n) tops[0] = fmaxf(tops[0], s[4 * n + 2 * i]), tops[1] = fmaxf(tops[1], s[4 * n + 2 * i + 1]);
    top = quad_max(fmaxf(tops[0], tops[1]));
    const float shift = top * factor;
    rows.correction[i] = kFirst ? 0.0f : exp2_approximate(rows.max[i] * factor - shift);
    rows.max[i] = top;
    float sums[2] = {0, 0};
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float p = exp2_approximate(s[4 * n + 2 * i + e] * factor - shift);
        s[4 * n + 2 * i + e] = p;
        sums[e] += p;
      }
    rows.sum[i] = (kFirst ? 0.0f : rows.sum[i] * rows.correction[i]) + sums[0] + sums[1];
  }
}

/// −∞ where key `first_key` + column is not seen from row t (and t + 8).
__device__ __forceinline__ void mask(float (&s)[kKeys / 2], const Pattern& p, int t, int first_key) {
  const int column = first_key + threadIdx.x % 4 * 2;
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = column + n * 8 + i % 2, row = t + i / 2 * 8;
      if (key > row || (p.window > 0 && key <= row - p.window)) s[4 * n + i] = -INFINITY;
    }
}

__device__ __forceinline__ void store(const ForwardArgs<bf16>& a, const Block& block, int t, const float (&o)[kWidth / 2],
                                      const RowStatistics& rows, float factor) {
  const int b = block.batch_head / a.p.heads, h = block.batch_head % a.p.heads;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float sum = quad_sum(rows.sum[i]), inverse = 1 / sum;
    if (t + 8 * i >= a.p.length) continue;
    bf16* to = a.o + b * a.v_batch + (t + 8 * i) * a.p.stride() + h * a.p.width + threadIdx.x % 4 * 2;
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n)
      if (n * 8 < a.p.width)
        *reinterpret_cast<uint32_t*>(to + n * 8) = pack_bf16(o[4 * n + 2 * i] * inverse, o[4 * n + 2 * i + 1] * inverse);
    if (threadIdx.x % 4 == 0) a.lse[int64_t{block.batch_head} * a.p.length + t + 8 * i] = (rows.max[i] * factor + log2f(sum)) * kLn2;
  }
}

__device__ __forceinline__ void consume(const ForwardArgs<bf16>& a, const Items& items, Barriers& barriers, uint32_t queries, uint32_t keys,
                                        uint32_t values) {
  const int warpgroup = consumer(), lane = threadIdx.x % 32;
  const float factor = a.p.scale * kLog2e;
  Ring<2> query;
  Ring<kStages> ring;
  // Consumers queue their products alternately (ping-pong), so that one exponentiates while the others multiply.
  const auto wait_for_tensor_cores = [&] { asm volatile("bar.sync %0, 256;" ::"r"(warpgroup + 1) : "memory"); };
  const auto give_tensor_cores = [&] { asm volatile("bar.arrive %0, 256;" ::"r"((warpgroup + 1) % kConsumers + 1) : "memory"); };
  if (warpgroup == kConsumers - 1) give_tensor_cores();
  const auto pass_over = [&] {
    wait_for_tensor_cores();
    give_tensor_cores();
    ring.await(barriers.keys);
    ring.release(barriers.keys);
    ring.await(barriers.values);
    ring.release(barriers.values);
    ++ring.use;
  };
  for (;; ++query.use) {
    query.await(barriers.queries.ring);
    const int index = barriers.queries.item[query.stage()];
    if (index < 0) return;
    const Block block = block_of(a.p, items.at(index));
    const int own = block.first + warpgroup * kOwnRows, t = own + threadIdx.x % kWarpgroup / 32 * 16 + lane / 4;
    const TileRange seen = own >= 0 ? key_tiles<kKeys>(a.p, own, kOwnRows) : TileRange{0, -1};
    const uint32_t query_rows = rows_of_64(queries + query.stage() * kQueryBytes + warpgroup * kOwnRows * kRowBytes);
    int tile = block.tiles.high;
    for (; tile > seen.high && tile >= block.tiles.low; --tile) pass_over();
    if (seen.high < seen.low) {
      query.release(barriers.queries.ring);
      continue;
    }
    float s[kKeys / 2], o[kWidth / 2];
    uint32_t weights[kKeys / 16][4];
    RowStatistics rows;
    const auto scores = [&](const Ring<kStages>& at) {
      const uint32_t key_rows = rows_of_64(keys + at.stage() * kTileBytes);
      at.await(barriers.keys);
      hold(s);
      begin_products();
#pragma unroll
      for (int k = 0; k < kWidth / 16; ++k) multiply(s, query_rows + k * kNextColumns, key_rows + k * kNextColumns, k > 0);
      commit_products();
    };
    const auto add_values = [&](const Ring<kStages>& at, bool add) {
      const uint32_t value_rows = rows_of_64(values + at.stage() * kTileBytes);
      at.await(barriers.values);
      hold(o);
      hold(weights);
      begin_products();
#pragma unroll
      for (int k = 0; k < kKeys / 16; ++k) multiply_transposed(o, weights[k], value_rows + k * kNextRows, add || k > 0);
      commit_products();
    };
    const auto hide = [&] {
      if (tile * kKeys + kKeys > own + 1 || (a.p.window > 0 && tile * kKeys <= own + kOwnRows - 1 - a.p.window))
        mask(s, a.p, t, tile * kKeys);
    };
    wait_for_tensor_cores();
    scores(ring);
    give_tensor_cores();
    finish_products<0>();
    hold(s);
    ring.release(barriers.keys);
    hide();
    exponentiate<true>(s, rows, factor);
    pack<kKeys / 2>(weights, s);
    bool add = false;
    for (--tile; tile >= seen.low; --tile, add = true) {
      const Ring<kStages> before = ring;
      ++ring.use;
      wait_for_tensor_cores();
      scores(ring);
      add_values(before, add);
      give_tensor_cores();
      finish_products<1>();
      hold(s);
      ring.release(barriers.keys);
      hide();
      exponentiate<false>(s, rows, factor);
      finish_products<0>();
      hold(o);
      before.release(barriers.values);
#pragma unroll
      for (int i = 0; i < kWidth / 2; ++i) o[i] *= rows.correction[i / 2 % 2];
      pack<kKeys / 2>(weights, s);
    }
    query.release(barriers.queries.ring);
    add_values(ring, add);
    finish_products<0>();
    hold(o);
    ring.release(barriers.values);
    ++ring.use;
    for (; tile >= block.tiles.low; --tile) pass_over();
    store(a, block, t, o, rows, factor);
  }
}

#endif

__global__ void __launch_bounds__(kThreads, 1)
    forward_kernel(const ForwardArgs<bf16> a, const __grid_constant__ ForwardMaps maps, const Items items) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ char memory[];
  __shared__ Barriers barriers;
  const uint32_t queries = (shared_address(memory) + 1023) / 1024 * 1024, keys = queries + 2 * kQueryBytes;
  const uint32_t values = keys + kStages * kTileBytes;
  if (threadIdx.x == 0) {
    constexpr int kReleases = kConsumers * 4;
    barriers.queries.ring.init(kReleases), barriers.keys.init(kReleases), barriers.values.init(kReleases);
    publish_barriers();
  }
  __syncthreads();
  if (threadIdx.x < kWarpgroup) {
    give_registers<32>();
    if (threadIdx.x == 0) produce(a, maps, items, barriers, queries, keys, values);
  } else {
    take_registers<160>();
    consume(a, items, barriers, queries, keys, values);
  }
#endif
}

}  // namespace
}  // namespace hopper

bool hopper_forward(Stream stream, const AttentionForward& in) {
  using namespace hopper;
  const HeadShape& shape = in.task.shape;
  const int device = in.o.device().index;
  if (!covers(in.task, in.v.dtype()) || in.entropy || in.best || in.resume || !available(device)) return false;
  const ForwardMaps maps{box_map(in.q, shape, kRows), box_map(in.k, shape, kKeys), box_map(in.v, shape, kKeys)};
  const Items items = items_of(stream, device, shape, kRows);
  allow_shared(forward_kernel, kShared);
  forward_kernel<<<persistent_blocks(device, items.count()), kThreads, kShared, stream>>>(forward_args<bf16>(in), maps, items);
  check_launch();
  return true;
}

}  // namespace saccade::cuda
