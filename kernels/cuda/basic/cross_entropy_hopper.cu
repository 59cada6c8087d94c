// Rows too long for the registers of a few warps, on Hopper: a block stays on its multiprocessor and takes row after row. TMA
// brings the next two to shared memory and takes finished ones back while a row is worked on, so device memory never waits.
#include <climits>

#include "kernels/cuda/device/device_code.cuh"
#include "kernels/cuda/device/hopper.cuh"
#include "kernels/cuda/device/hopper.h"
#include "kernels/ops/cross_entropy/cross_entropy_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 1024, kPacks = 4, kRows = 3, kMost = kThreads * kPacks * kVector<bf16>;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr int kWarps = kThreads / 32;
constexpr float kLog2e = 1.4426950408889634f;

/// Over the block, in every thread; `parts` may be used again after the block's next barrier.
template <class T, class Merge>
__device__ __forceinline__ T over_block(T of_warp, T (&parts)[kWarps], Merge merge) {
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = of_warp;
  __syncthreads();
  return merge(parts[threadIdx.x % 32]);
}

#endif

/// kPlace: the place of the row's largest logit is looked for, to be told in `largest`, unless that is null, and pulled at.
template <bool kPlace>
__global__ void __launch_bounds__(kThreads, 1) staged_softmax_kernel(bf16* logits, const int32_t* targets, float* losses, int32_t* largest,
                                                                     int rows, int n, bool gradient, float scale, float pull) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(128) char memory[];
  __shared__ uint64_t filled[kRows];
  __shared__ float tops[kWarps], sums[kWarps];
  __shared__ int places[kWarps];
  constexpr int V = kVector<bf16>;
  const int bytes = n * 2, packs = n / V, step = static_cast<int>(gridDim.x);
  const auto fetch = [&](int row, int stage) {
    if (row >= rows) return;
    const uint32_t barrier = shared_address(&filled[stage]);
    hopper::arrive_expecting(barrier, bytes);
    hopper::get_bytes(shared_address(memory + stage * bytes), logits + int64_t{row} * n, bytes, barrier);
  };
  int row = blockIdx.x, target = targets[row];
  if (threadIdx.x == 0) {
    for (uint64_t& barrier : filled) hopper::init_barrier(shared_address(&barrier), 1);
    hopper::publish_barriers();
    fetch(row, 0), fetch(row + step, 1);
  }
  __syncthreads();
  for (int use = 0; row < rows; row += step, ++use) {
    const int stage = use % kRows, next_target = row + step < rows ? targets[row + step] : 0;
    auto* values = reinterpret_cast<bf16*>(memory + stage * bytes);
    hopper::wait(shared_address(&filled[stage]), use / kRows & 1);
    const bool counts = target >= 0;
    const float wanted = counts ? to_float(values[target]) : 0.0f;
    float e[kPacks][V];  // logits, then their exponentials
    __nv_bfloat162 tops_of_two = __float2bfloat162_rn(-INFINITY);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = threadIdx.x + p * kThreads;
      if (at >= packs) continue;
      const Pack<bf16> x = load_pack(values + at * V);
#pragma unroll
      for (int v = 0; v < V; v += 2) tops_of_two = __hmax2(tops_of_two, __halves2bfloat162(x.v[v], x.v[v + 1]));
#pragma unroll
      for (int v = 0; v < V; ++v) e[p][v] = to_float(x.v[v]);
    }
    const float top =
        over_block(warp_max(fmaxf(__low2float(tops_of_two), __high2float(tops_of_two))), tops, [](float y) { return warp_max(y); });
    const float shift = top * kLog2e;
    float sum = 0;
    int place = INT_MAX;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = threadIdx.x + p * kThreads;
      if (at >= packs) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        if constexpr (kPlace) place = min(place, e[p][v] == top ? at * V + v : INT_MAX);
        sum += e[p][v] = exp2_approximate(e[p][v] * kLog2e - shift);
      }
    }
    sum = over_block(warp_sum(sum), sums, [](float y) { return warp_sum(y); });
    if (threadIdx.x == 0) losses[row] = counts ? top + logf(sum) - wanted : 0.0f;
    const float factor = counts ? scale / sum : 0.0f;
    if constexpr (kPlace) {
      const auto first = [](int y) { return __reduce_min_sync(0xffffffffu, y); };
      place = over_block(first(place), places, first);
      if (largest && threadIdx.x == 0) largest[row] = counts && top > -INFINITY ? place : -1;  // NaN is passed over
    }
    if (gradient) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        const int at = threadIdx.x + p * kThreads;
        if (at >= packs) continue;
        Pack<bf16> x;
#pragma unroll
        for (int v = 0; v < V; ++v) x.v[v] = from_float<bf16>(e[p][v] * factor);
        store_pack(values + at * V, x);
      }
      hopper::publish_shared();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      if (gradient && counts) {
        const auto value = [&](float logit) { return exp2_approximate(logit * kLog2e - shift) * factor; };
        if (kPlace && pull != 0 && place != target && place < n) values[place] = from_float<bf16>(value(top) + pull * top);
        values[target] = from_float<bf16>(value(wanted) - scale + (kPlace && place == target ? pull * top : 0.0f));
        hopper::publish_shared();
      }
      if (gradient) hopper::put_bytes(logits + int64_t{row} * n, shared_address(values), bytes);
      hopper::commit_writes();
      hopper::finish_reads<1>();  // the row before has been taken from shared memory
      fetch(row + 2 * step, (use + 2) % kRows);
    }
    target = next_target;
  }
  if (threadIdx.x == 0) hopper::finish_reads<0>();
#endif
}

}  // namespace

bool hopper_softmax_cross_entropy(Stream stream, const Tensor& logits, const int32_t* targets, float* losses, int32_t* largest,
                                  int64_t rows, bool gradient, double scale, double penalty) {
  const int64_t n = logits.dim(-1);
  const int device = logits.device().index, shared = static_cast<int>(kRows * n * 2);
  if (logits.dtype() != DType::bf16 || n % kVector<bf16> != 0 || n > kMost || !hopper::available(device)) return false;
  const auto launch = [&](auto kernel) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    kernel<<<hopper::persistent_blocks(device, rows), kThreads, static_cast<size_t>(shared), stream>>>(
        pointer<bf16>(logits), targets, losses, largest, static_cast<int>(rows), static_cast<int>(n), gradient, static_cast<float>(scale),
        static_cast<float>(scale * penalty));
    check_launch();
  };
  penalty > 0 || largest ? launch(staged_softmax_kernel<true>) : launch(staged_softmax_kernel<false>);
  return true;
}

}  // namespace saccade::cuda
