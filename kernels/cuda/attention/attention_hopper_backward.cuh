#pragma once
/// Shared by the parts of the backward pass on Hopper: the order in which blocks of keys go over tiles of queries, and the barriers.
#include "kernels/cuda/attention/attention_hopper.cuh"

namespace saccade::cuda::hopper::backward {

constexpr int kConsumers = 2, kRows = kConsumers * kOwnRows, kTile = kQueryTile, kStages = 4, kReducers = 3;
constexpr int kThreads = (kConsumers + 2) * kWarpgroup;
constexpr int kOwnBytes = kRows * kRowBytes, kTileBytes = kTile * kRowBytes;
constexpr int kSlopeBytes = kRows * kTile * 2, kShareFloats = kTile * kWidth, kShareBytes = kShareFloats * 4;
constexpr int kShared = 2 * 2 * kOwnBytes + 2 * kStages * kTileBytes + 2 * kSlopeBytes + kReducers * kShareBytes + 1024;
static_assert(kShareFloats == kShareOfQueries);

/// Sums of dq so far: kShareFloats for each tile of queries of each (sequence, head), and the number of blocks added.
struct QuerySums {
  float* sums;
  int* counts;
  int tiles;
};

/// lse · log2 e and delta of the queries of each stage, in the order in which threads read them, four at a time.
struct alignas(16) QueryNotes {
  float lse[kStages][kTile], delta[kStages][kTile];

  static __device__ __forceinline__ int place(int query) { return query / 16 * 16 + query % 8 / 2 * 4 + query / 8 % 2 * 2 + query % 2; }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

struct Barriers {
  OwnRows own;
  RingBarriers<kStages> tiles;
  RingBarriers<2> slopes;          // dS: filled by consumers, emptied by the warpgroup of dq
  RingBarriers<kReducers> shares;  // of dq: emptied by the reducers
  uint64_t sums[kReducers];        // what other blocks have summed: filled by the reducers
};

struct Addresses {
  uint32_t own[2], tiles[2], slopes, shares;
};

/// The last keys have the least work.
struct Block {
  int batch_head, first;
  TileRange tiles;
};
__device__ __forceinline__ Block block_of(const Pattern& p, const Items& items, int index) {
  const Item item = items.at(index);
  const int first = (items.blocks - 1 - item.rank) * kRows;
  return {item.batch_head, first, query_tiles<kTile>(p, first, kRows)};
}

/// Number of blocks that add to a tile of queries before this one, and whether any adds after it.
struct SumOrder {
  int before;
  bool last;
};
__device__ __forceinline__ SumOrder sum_order(const Pattern& p, const Block& block, int tile) {
  const TileRange blocks = key_tiles<kRows>(p, tile * kTile, kTile);
  return {blocks.high - block.first / kRows, block.first / kRows == blocks.low};
}

using Sum = float[kWidth / 2];

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

/// Cosines and sines for a thread's elements of rows t and t + 8 of a head, loaded before they are needed.
template <bool kRotates>
struct Angles {
  uint2 pairs[2][kWidth / 16];

  __device__ __forceinline__ void load(const BackwardArgs<bf16>& a, int t, int column) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const __half2* row = a.angles + int64_t{min(t + 8 * i, a.p.length - 1)} * (a.p.width / 2) + column;
#pragma unroll
      for (int n = 0; n < kWidth / 16; ++n)
        if (n * 16 < a.p.width) pairs[i][n] = *reinterpret_cast<const uint2*>(row + 8 * n);
    }
  }

  /// Rotates row i back: pairs (j, j + width / 2), both in this thread.
  __device__ __forceinline__ void rotate_back(const BackwardArgs<bf16>& a, Sum& sum, int i) const {
    if (a.p.width == 64)
      rotate_back<4>(sum, i);
    else if (a.p.width == 32)
      rotate_back<2>(sum, i);
    else
      rotate_back<1>(sum, i);
  }

 private:
  template <int kPieces>
  __device__ __forceinline__ void rotate_back(Sum& sum, int i) const {
#pragma unroll
    for (int n = 0; n < kPieces; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const uint32_t pair = e == 0 ? pairs[i][n].x : pairs[i][n].y;
        const float2 angle = __half22float2(reinterpret_cast<const __half2&>(pair));
        float &low = sum[4 * n + 2 * i + e], &high = sum[4 * (n + kPieces) + 2 * i + e];
        const float rotated = low * angle.x + high * angle.y;
        high = high * angle.x - low * angle.y;
        low = rotated;
      }
  }
};
template <>
struct Angles<false> {
  __device__ void load(const BackwardArgs<bf16>&, int, int) {}
  __device__ void rotate_back(const BackwardArgs<bf16>&, Sum&, int) const {}
};

/// Positions of a thread's elements of a tile [64 x 64]: rows `row` and `row` + 8, columns `column` + 8 n and the next.
struct ElementPosition {
  int row = threadIdx.x % kWarpgroup / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
};
#endif

}  // namespace saccade::cuda::hopper::backward
