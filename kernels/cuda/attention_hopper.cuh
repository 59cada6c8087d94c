#pragma once
/// What the attention kernels for Hopper share: bf16 heads of up to 64, causal, with or without a window. Narrower heads are padded
/// with zeros to 64 as they are copied to shared memory: exponentials, not products, bound those.
#include <cuda.h>

#include "kernels/cuda/attention_pattern.cuh"
#include "kernels/cuda/hopper.cuh"

namespace saccade::cuda::hopper {

constexpr int kWidth = 64;       ///< of a head, padded
constexpr int kWarpgroup = 128;  ///< threads
constexpr int kOwnRows = 64;     ///< rows that a warpgroup owns
constexpr int kRowBytes = kWidth * 2;

/// Whether these kernels can run there: compute capability 9.0.
bool available(int device);
/// Whether they cover the pattern: bf16 heads of 8, 16, … 64, plain causal or windowed, scale > 0, at least two blocks of rows.
bool covers(const AttentionTask& task, DType type);
/// Blocks that fill the device, at most `items`.
unsigned persistent_blocks(int device, int64_t items);
/// x [B or 1, T, H, d] in boxes of `rows` positions of one head.
CUtensorMap box_map(const Tensor& x, const HeadShape& shape, int rows);

/// Work of a persistent grid: item i is block i / lines of line i % lines, so the blocks with most work must come first.
struct Items {
  int lines, count;
};

/// Where a producer and its consumers stand in a ring of kStages tiles.
template <int kStages>
struct Ring {
  int use = 0;
  __device__ int stage() const { return use % kStages; }
  __device__ uint32_t filled_parity() const { return use / kStages & 1; }
  __device__ uint32_t emptied_parity() const { return (use / kStages & 1) ^ 1; }
};

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
