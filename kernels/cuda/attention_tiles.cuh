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

}  // namespace saccade::cuda
