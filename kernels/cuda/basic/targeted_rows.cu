// Rows with a target among many without one: listed in order, gathered, and what was made of them spread again.
#include <cmath>

#include "kernels/cuda/device/device_code.cuh"
#include "kernels/ops/cross_entropy/cross_entropy_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kListed = 1024, kWarps = kListed / 32;  ///< rows that a block lists

/// Each block counts the targets in front of its rows itself, so none waits for another.
__global__ void __launch_bounds__(kListed)
    list_targets_kernel(const int32_t* targets, int n, int most, int32_t* rows, int32_t* row_targets, int32_t* places) {
  __shared__ int before[kWarps], own[kWarps];
  const int first = static_cast<int>(blockIdx.x) * kListed, row = first + static_cast<int>(threadIdx.x);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int in_front = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < first; i += kListed) in_front += targets[i] >= 0 ? 1 : 0;
  in_front = __reduce_add_sync(0xffffffffu, in_front);
  const int target = row < n ? targets[row] : TargetedRows::kNone;
  const unsigned votes = __ballot_sync(0xffffffffu, target >= 0);
  if (lane == 0) before[warp] = in_front, own[warp] = __popc(votes);
  __syncthreads();
  int place = __popc(votes & ((1u << lane) - 1)), all = 0;
  for (int w = 0; w < kWarps; ++w) {
    place += before[w] + (w < warp ? own[w] : 0);
    all += before[w] + own[w];
  }
  if (row < n) places[row] = target < 0 ? TargetedRows::kNone : place < most ? place : TargetedRows::kNoRoom;
  if (target >= 0 && place < most) rows[place] = row, row_targets[place] = target;
  if (blockIdx.x + 1 == gridDim.x)
    for (int i = all + static_cast<int>(threadIdx.x); i < most; i += kListed) rows[i] = row_targets[i] = TargetedRows::kNone;
}

/// V elements that are moved at once.
template <class T, int V>
struct alignas(V * sizeof(T)) Piece {
  T v[V];
};

/// A thread per piece of to[i] = factor · from[index[i]].
template <int V, bool kScaled, class T>
__global__ void __launch_bounds__(kThreads)
    take_rows_kernel(const T* from, const int32_t* index, const float* factor, T* to, int64_t pieces, int pieces_a_row) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= pieces) return;
  const int64_t row = i / pieces_a_row, piece = i - row * pieces_a_row;
  const int32_t source = index[row];
  Piece<T, V> x;
  if (source >= 0) {
    x = reinterpret_cast<const Piece<T, V>*>(from)[source * int64_t{pieces_a_row} + piece];
    if constexpr (kScaled)
#pragma unroll
      for (int v = 0; v < V; ++v) x.v[v] = from_float<T>(to_float(x.v[v]) * *factor);
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v) x.v[v] = from_float<T>(0.0f);
  }
  reinterpret_cast<Piece<T, V>*>(to)[i] = x;
}

template <bool kScaled>
void take_rows(Stream stream, const Tensor& from, const int32_t* index, const float* factor, const Tensor& to) {
  const int64_t width = to.dim(-1);
  dispatch_cuda(to.dtype(), [&](auto t) {
    using T = decltype(t);
    const auto launch = [&](auto vector) {
      constexpr int V = decltype(vector)::value;
      const int64_t pieces = to.size() / V;
      take_rows_kernel<V, kScaled><<<blocks_for(pieces, kThreads), kThreads, 0, stream>>>(pointer<T>(from), index, factor, pointer<T>(to),
                                                                                          pieces, static_cast<int>(width / V));
    };
    width % kVector<T> == 0 ? launch(std::integral_constant<int, kVector<T>>{}) : launch(std::integral_constant<int, 1>{});
  });
  check_launch();
}

__global__ void __launch_bounds__(kThreads) spread_losses_kernel(const float* losses, const int32_t* places, float* tokens, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= n) return;
  const int32_t place = places[i];
  tokens[i] = place >= 0 ? losses[place] : place == TargetedRows::kNoRoom ? NAN : 0.0f;
}

__global__ void __launch_bounds__(kThreads) spread_largest_kernel(const int32_t* from, const int32_t* places, int32_t* to, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= n) return;
  const int32_t place = places[i];
  to[i] = place >= 0 ? from[place] : -1;
}

}  // namespace

void list_targets(Stream stream, const Tensor& targets, const TargetedRows& list) {
  list_targets_kernel<<<blocks_for(targets.size(), kListed), kListed, 0, stream>>>(
      pointer<int32_t>(targets), static_cast<int>(targets.size()), static_cast<int>(list.rows.size()), pointer<int32_t>(list.rows),
      pointer<int32_t>(list.targets), pointer<int32_t>(list.places));
  check_launch();
}

void gather_rows(Stream stream, const Tensor& hidden, const TargetedRows& list, int64_t first, const Tensor& gathered) {
  take_rows<false>(stream, hidden, pointer<int32_t>(list.rows) + first, nullptr, gathered);
}

void spread_rows(Stream stream, const Tensor& from, const TargetedRows& list, const Tensor& factor, const Tensor& to) {
  take_rows<true>(stream, from, pointer<int32_t>(list.places), pointer<float>(factor), to);
}

void spread_losses(Stream stream, const Tensor& losses, const TargetedRows& list, const Tensor& tokens) {
  spread_losses_kernel<<<blocks_for(tokens.size(), kThreads), kThreads, 0, stream>>>(pointer<float>(losses), pointer<int32_t>(list.places),
                                                                                     pointer<float>(tokens), tokens.size());
  check_launch();
}

void spread_largest(Stream stream, const Tensor& from, const TargetedRows& list, const Tensor& to) {
  spread_largest_kernel<<<blocks_for(to.size(), kThreads), kThreads, 0, stream>>>(pointer<int32_t>(from), pointer<int32_t>(list.places),
                                                                                  pointer<int32_t>(to), to.size());
  check_launch();
}

}  // namespace saccade::cuda
