#pragma once
/// dq of the backward pass on Hopper. One warpgroup computes a block's share for a tile of queries, dS k over its 128 keys. Separate
/// threads, the reducers, add it by TMA to the sum of the blocks of later keys in device memory, block after block; the last block reads
/// the sum and writes dq.
#include "kernels/cuda/attention/attention_hopper_backward.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
namespace saccade::cuda::hopper::backward {

/// One thread, which adds every third share to the sum of dq.
__device__ __forceinline__ void reduce(const BackwardArgs<bf16>& a, const Items& items, Barriers& barriers, const Addresses& at,
                                       const QuerySums& to, uint32_t reducer) {
  Ring<kReducers> ring;
  for (Ring<2> own;; ++own.use) {
    own.await(barriers.own.ring);
    const int index = barriers.own.item[own.stage()];
    if (index < 0) return;
    arrive(shared_address(&barriers.own.ring.emptied[own.stage()]));
    const Block block = block_of(a.p, items, index);
    for (int tile = block.tiles.low; tile <= block.tiles.high; ++tile, ++ring.use) {
      if (ring.stage() != reducer) continue;
      const SumOrder order = sum_order(a.p, block, tile);
      const int64_t tile_index = int64_t{block.batch_head} * to.tiles + tile;
      float* sums = to.sums + tile_index * kShareFloats;
      const uint32_t share = at.shares + reducer * kShareBytes;
      if (order.before > 0) await_count(to.counts + tile_index, order.before);
      if (order.before > 0 && order.last) {
        const uint32_t filled = shared_address(&barriers.sums[reducer]);
        arrive_expecting(filled, kShareBytes);
        get_bytes(share, sums, kShareBytes, filled);
      }
      ring.await(barriers.shares);
      if (!order.last) {
        if (order.before == 0)
          put_bytes(sums, share, kShareBytes);
        else
          add_floats(sums, share, kShareBytes);
        finish_writes();
        raise_count(to.counts + tile_index);
      }
      arrive(shared_address(&barriers.shares.emptied[reducer]));
    }
  }
}

/// The warpgroup that computes dq.
template <bool kRotates>
__device__ __forceinline__ void sum_queries(const BackwardArgs<bf16>& a, const Items& items, Barriers& barriers, const Addresses& at,
                                            const QuerySums& to) {
  const ElementPosition element;
  const int piece = threadIdx.x % kWarpgroup / 32 * 256 + threadIdx.x % 32;  // of four floats; the next are 32 further
  Ring<2> slopes;
  Ring<kReducers> shares;
  uint32_t taken = 0;  // a bit for each stage: parity of the sums taken from it
  for (Ring<2> own;; ++own.use) {
    own.await(barriers.own.ring);
    const int index = barriers.own.item[own.stage()];
    if (index < 0) return;
    const Block block = block_of(a.p, items, index);
    const uint32_t keys = rows_of_64(at.own[0] + own.stage() * kOwnBytes);
    for (int tile = block.tiles.low; tile <= block.tiles.high; ++tile, ++slopes.use) {
      const uint32_t slope_rows = rows_of_64(at.slopes + slopes.stage() * kSlopeBytes);
      const SumOrder order = sum_order(a.p, block, tile);
      Sum dq;
      Angles<kRotates> angles;
      if (order.last) angles.load(a, tile * kTile + element.row, element.column);
      slopes.await(barriers.slopes);
      hold(dq);
      begin_products();
#pragma unroll
      for (int k = 0; k < kRows / 16; ++k) multiply_shared<true>(dq, slope_rows + k * kNextRows, keys + k * kNextRows, k > 0);
      commit_products();
      finish_products<0>();
      hold(dq);
      slopes.release(barriers.slopes);
      const uint32_t filled = shares.claim(barriers.shares), share = at.shares + shares.stage() * kShareBytes + piece * 16;
      if (!order.last) {
#pragma unroll
        for (int i = 0; i < 8; ++i) store_four(share + i * 512, dq[4 * i], dq[4 * i + 1], dq[4 * i + 2], dq[4 * i + 3]);
      } else if (order.before > 0) {
        wait(shared_address(&barriers.sums[shares.stage()]), taken >> shares.stage() & 1);
        taken ^= 1u << shares.stage();
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const float4 x = load_four(share + i * 512);
          dq[4 * i] += x.x, dq[4 * i + 1] += x.y, dq[4 * i + 2] += x.z, dq[4 * i + 3] += x.w;
        }
      }
      shares.hand_over(filled);
      ++shares.use;
      if (!order.last || !a.dq) continue;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int t = tile * kTile + element.row + 8 * i;
        if (t >= a.p.length) continue;
        angles.rotate_back(a, dq, i);
        store(a.dq + a.gradient(block.batch_head, t) + element.column, a.p.width, dq, i, a.p.scale, a.add_dq);
      }
    }
    own.release(barriers.own.ring);
  }
}

}  // namespace saccade::cuda::hopper::backward
#endif
