#pragma once
/// Sizes that the attention kernels on tensor cores share.
#include "kernels/cuda/tensor_core.cuh"

namespace saccade::cuda {

constexpr int kTileThreads = 128;
/// Matrices of 16 rows that a warp owns: as many as its registers hold.
template <int D>
constexpr int kRowTiles = D <= 64 ? 2 : 1;
/// Rows that a block owns.
template <int D>
constexpr int kTileRows = kTileThreads / 32 * 16 * kRowTiles<D>;
/// Threads of a block that meets a chunk or two of keys: twice as many where rows allow it, since short work waits for memory.
template <int D>
constexpr int kShortThreads = D == 32 || D == 64 ? 2 * kTileThreads : kTileThreads;
/// Matrices of 16 rows that each of a block's warps owns.
template <int D, int kThreads>
constexpr int kWarpTiles = kTileRows<D> / (kThreads / 32 * 16);

}  // namespace saccade::cuda
