#pragma once
/// Shared by the attention kernels for Hopper: bf16 heads of up to 64, causal, with or without a window. Narrower heads are padded with
/// zeros to 64 in the copy to shared memory: their time is that of the exponentials, not of the products.
#include "kernels/cuda/attention/attention_pattern.cuh"
#include "kernels/cuda/device/hopper.cuh"
#include "kernels/cuda/device/hopper.h"

namespace saccade::cuda::hopper {

constexpr int kWidth = 64;       ///< padded head width
constexpr int kWarpgroup = 128;  ///< threads
constexpr int kOwnRows = 64;     ///< rows that a warpgroup owns
constexpr int kRowBytes = kWidth * 2;

/// Whether they cover the pattern: bf16 heads of 8, 16, … 64, plain causal or windowed, scale > 0, at least two blocks of rows.
bool covers(const AttentionTask& task, DType type);
/// x [B or 1, T, H, d] in boxes of `rows` positions of one head.
CUtensorMap box_map(const Tensor& x, const HeadShape& shape, int rows);

/// A block of rows of one (sequence, head); rank 0 has the most work.
struct Item {
  int batch_head, rank;
};
/// Work of a persistent grid, in the order of its start: batch x heads in sections, so that what the blocks of a section read stays in the
/// L2 cache, and within a section the longest blocks first. A thread block takes the next item after it has queued the loads of the one
/// before; which block takes an item changes no result.
struct Items {
  int batch_heads, blocks, section;
  unsigned* counters;  ///< items taken beyond the first of each thread block; thread blocks that are done. Zero between launches

  __host__ __device__ int count() const { return batch_heads * blocks; }
  __device__ Item at(int index) const {
    const int before = index / (section * blocks) * section, within = index % (section * blocks),
              width = min(section, batch_heads - before);
    return {before + within % width, within / width};
  }
  __device__ int take() const { return static_cast<int>(gridDim.x + atomicAdd(counters, 1u)); }
  /// Called once by each thread block, after its last take.
  __device__ void close() const {
    if (atomicAdd(counters + 1, 1u) == gridDim.x - 1) counters[0] = 0, counters[1] = 0;
  }
};
/// Blocks of `rows` rows of every (sequence, head).
Items items_of(Stream stream, int device, const HeadShape& shape, int rows);

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// Barriers of a ring of kStages tiles that a producer fills and consumers empty.
template <int kStages>
struct RingBarriers {
  uint64_t filled[kStages], emptied[kStages];

  /// `releases`: how many empty a tile, counting warps; `fills`: how many fill it.
  __device__ __forceinline__ void init(int releases, int fills = 1) {
    for (int i = 0; i < kStages; ++i) init_barrier(shared_address(&filled[i]), fills), init_barrier(shared_address(&emptied[i]), releases);
  }
};

/// Position of a producer or a consumer in a ring.
template <int kStages>
struct Ring {
  uint32_t use = 0;
  __device__ __forceinline__ uint32_t stage() const { return use % kStages; }
  __device__ __forceinline__ uint32_t parity() const { return use / kStages & 1; }

  /// For the producer: waits until the tile is empty; the barrier that counts the bytes that fill it.
  __device__ __forceinline__ uint32_t claim(RingBarriers<kStages>& barriers) const {
    wait(shared_address(&barriers.emptied[stage()]), parity() ^ 1);
    return shared_address(&barriers.filled[stage()]);
  }
  /// For a consumer: waits until the tile is filled.
  __device__ __forceinline__ void await(RingBarriers<kStages>& barriers) const {
    wait(shared_address(&barriers.filled[stage()]), parity());
  }
  /// Called by every warp that fills a claimed tile with ordinary stores, after these.
  __device__ __forceinline__ void hand_over(uint32_t to_fill) const {
    publish_shared();
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(to_fill);
  }
  /// Called by every warp of every consumer.
  __device__ __forceinline__ void release(RingBarriers<kStages>& barriers) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(shared_address(&barriers.emptied[stage()]));
  }
};

/// The rows that consumers own, of the current item and of the next one.
struct OwnRows {
  RingBarriers<2> ring;
  int item[2];  ///< the item of these rows; −1: no more items
};

/// The producer's side: load(item, stage, filled) for each item of this thread block, where `filled` counts the `bytes` of its rows.
template <class Load>
__device__ __forceinline__ void for_items(const Items& items, OwnRows& rows, uint32_t bytes, Load&& load) {
  Ring<2> own;
  for (int index = blockIdx.x, next = 0;; index = next, ++own.use) {
    const uint32_t filled = own.claim(rows.ring);
    rows.item[own.stage()] = index < items.count() ? index : -1;
    if (index >= items.count()) {
      arrive(filled);
      return items.close();
    }
    arrive_expecting(filled, bytes);
    load(items.at(index), own.stage(), filled);
    next = items.take();
  }
}

/// Index of a warpgroup among the consumers, uniform over a warp.
__device__ __forceinline__ int consumer() { return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / kWarpgroup - 1, 0); }

#endif

/// Tiles [low, high] of kTile keys that queries [first, first + count) see.
struct TileRange {
  int low, high;
};
template <int kTile>
__device__ __forceinline__ TileRange key_tiles(const Pattern& p, int first, int count) {
  const int last = min(first + count, p.length) - 1;
  if (last < first) return {0, -1};
  return {(p.window > 0 ? max(0, first - p.window + 1) : 0) / kTile, last / kTile};
}
/// Tiles [low, high] of kTile queries that see keys [first, first + count).
template <int kTile>
__device__ __forceinline__ TileRange query_tiles(const Pattern& p, int first, int count) {
  const int last = min(first + count, p.length) - 1;
  if (last < first) return {0, -1};
  const int end = p.window > 0 ? min(p.length, last + p.window) : p.length;
  return {first / kTile, (end - 1) / kTile};
}

}  // namespace saccade::cuda::hopper
