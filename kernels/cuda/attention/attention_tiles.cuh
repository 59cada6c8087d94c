#pragma once
/// Sizes of the attention kernels on tensor cores.
#include "kernels/cuda/device/tensor_core.cuh"

namespace saccade::cuda {

constexpr int kTileThreads = 128;
/// Matrices of 16 rows per warp: as many as its registers hold.
template <int D>
constexpr int kRowTiles = D <= 64 ? 2 : 1;
/// Rows per block.
template <int D>
constexpr int kTileRows = kTileThreads / 32 * 16 * kRowTiles<D>;
/// Threads of a block that sees one or two chunks of keys: twice as many where its rows allow it, because short work waits for memory.
template <int D>
constexpr int kShortThreads = D == 32 || D == 64 ? 2 * kTileThreads : kTileThreads;
/// Matrices of 16 rows per warp of a block.
template <int D, int kThreads>
constexpr int kWarpTiles = kTileRows<D> / (kThreads / 32 * 16);

}  // namespace saccade::cuda
