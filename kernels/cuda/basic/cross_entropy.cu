#include <climits>

#include "kernels/cuda/device/device_code.cuh"
#include "kernels/ops/cross_entropy/cross_entropy_cuda.h"

namespace saccade::cuda {
namespace {

/// Running maximum and sum of exponentials relative to it.
struct Soft {
  float top, sum;
};
__device__ __forceinline__ Soft merge(Soft a, Soft b) {
  const float top = fmaxf(a.top, b.top);
  if (top == -INFINITY) return {top, 0.0f};
  return {top, a.sum * __expf(a.top - top) + b.sum * __expf(b.top - top)};
}

/// Smallest index over the kWarps warps of a block that share a row; of a warp alone for kWarps = 1.
template <int kWarps>
__device__ __forceinline__ int first_of_row(int index) {
  const int of_warp = __reduce_min_sync(0xffffffffu, index);
  if constexpr (kWarps == 1) return of_warp;
  __shared__ int parts[kWarps];
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = of_warp;
  __syncthreads();
  int first = parts[0];
#pragma unroll
  for (int w = 1; w < kWarps; ++w) first = min(first, parts[w]);
  return first;
}

/// The place of a row's largest logit as it is told: −1 where none is above −∞ (NaN is passed over), or where nothing is asked.
__device__ __forceinline__ int told_place(bool counts, float top, int place) { return counts && top > -INFINITY ? place : -1; }

/// A block of kThreads owns a row: one pass for maximum and sum, one that leaves the gradient. With kPlace each thread keeps
/// where it first met its maximum, and the first place among those of the row's maximum goes to `largest`, unless that is null, and gets
/// `penalty` times the maximum.
template <int kThreads, bool kPlace, class T>
__global__ void __launch_bounds__(kThreads)
    softmax_kernel(T* logits, const int32_t* targets, float* losses, int32_t* largest, int n, bool gradient, float scale, float penalty) {
  __shared__ Soft parts[kThreads / 32];
  constexpr int V = kVector<T>;
  const int64_t row = blockIdx.x;
  logits += row * n;
  const int target = targets[row], packs = n % V == 0 ? n / V : 0;
  const bool counts = target >= 0;
  const float wanted = counts ? to_float(logits[target]) : 0.0f;
  Soft mine{-INFINITY, 0.0f};
  int place = INT_MAX;
  for (int p = threadIdx.x; p < packs; p += kThreads) {
    const Pack<T> piece = load_pack(logits + p * V);
    float top = to_float(piece.v[0]), sum = 0;
#pragma unroll
    for (int v = 1; v < V; ++v) top = fmaxf(top, to_float(piece.v[v]));
#pragma unroll
    for (int v = 0; v < V; ++v) sum += __expf(to_float(piece.v[v]) - top);
    if constexpr (kPlace)
      if (top > mine.top)
#pragma unroll
        for (int v = V - 1; v >= 0; --v)
          if (to_float(piece.v[v]) == top) place = p * V + v;
    mine = merge(mine, {top, sum});
  }
  for (int i = packs * V + threadIdx.x; i < n; i += kThreads) {
    const float value = to_float(logits[i]);
    if constexpr (kPlace)
      if (value > mine.top) place = i;
    mine = merge(mine, {value, 1.0f});
  }
  const float own_top = mine.top;
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1)
    mine = merge(mine, {__shfl_xor_sync(0xffffffffu, mine.top, offset), __shfl_xor_sync(0xffffffffu, mine.sum, offset)});
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
  __syncthreads();
  Soft all = parts[0];
  for (int w = 1; w < kThreads / 32; ++w) all = merge(all, parts[w]);
  if (threadIdx.x == 0) losses[row] = counts ? all.top + logf(all.sum) - wanted : 0.0f;
  if constexpr (kPlace) {
    place = first_of_row<kThreads / 32>(own_top == all.top ? place : INT_MAX);
    if (largest && threadIdx.x == 0) largest[row] = told_place(counts, all.top, place);
  }
  if (!gradient) return;
  const float factor = counts ? scale / all.sum : 0.0f, pull = counts ? penalty * all.top : 0.0f;
  const auto gradient_of = [&](T logit, int i) {
    float g = __expf(to_float(logit) - all.top) * factor - (i == target ? scale : 0.0f);
    if constexpr (kPlace) g += i == place ? pull : 0.0f;
    return from_float<T>(g);
  };
  for (int p = threadIdx.x; p < packs; p += kThreads) {
    Pack<T> piece = load_pack(logits + p * V);
#pragma unroll
    for (int v = 0; v < V; ++v) piece.v[v] = gradient_of(piece.v[v], p * V + v);
    store_pack(logits + p * V, piece);
  }
  for (int i = packs * V + threadIdx.x; i < n; i += kThreads) logits[i] = gradient_of(logits[i], i);
}

/// Largest value, or sum, over the kWarps warps of a block that share a row; of a warp alone for kWarps = 1.
template <int kWarps, class Merge>
__device__ __forceinline__ float over_row(float of_warp, Merge merge) {
  if constexpr (kWarps == 1) return of_warp;
  __shared__ float parts[kWarps];
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = of_warp;
  __syncthreads();
  float all = parts[0];
#pragma unroll
  for (int w = 1; w < kWarps; ++w) all = merge(all, parts[w]);
  return all;
}

/// The same with the row in registers, kPacks pieces of 16 bytes a thread: it is read once. kWarps warps share a row; with one,
/// a block takes kRowsOfWarps rows.
constexpr int kRowsOfWarps = 8;
template <int kWarps, int kPacks, bool kPlace, class T>
__global__ void __launch_bounds__(kWarps == 1 ? 32 * kRowsOfWarps : 32 * kWarps)
    softmax_packed_kernel(T* logits, const int32_t* targets, float* losses, int32_t* largest, int64_t rows, int n, bool gradient,
                          float scale, float penalty) {
  constexpr int V = kVector<T>;
  const int64_t row = kWarps == 1 ? int64_t{blockIdx.x} * kRowsOfWarps + threadIdx.x / 32 : blockIdx.x;
  if (row >= rows) return;
  const int thread = kWarps == 1 ? threadIdx.x % 32 : threadIdx.x, packs = n / V, target = targets[row];
  logits += row * n;
  Pack<T> x[kPacks];
  float top = -INFINITY;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const int at = thread + p * 32 * kWarps;
    if (at < packs) x[p] = load_pack(logits + at * V);
  }
#pragma unroll
  for (int p = 0; p < kPacks; ++p)
    if (thread + p * 32 * kWarps < packs)
#pragma unroll
      for (int v = 0; v < V; ++v) top = fmaxf(top, to_float(x[p].v[v]));
  top = over_row<kWarps>(warp_max(top), [](float a, float b) { return fmaxf(a, b); });
  float sum = 0, wanted = 0;
  int place = INT_MAX;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const int at = (thread + p * 32 * kWarps) * V;
    if (at < n)
#pragma unroll
      for (int v = 0; v < V; ++v) {
        sum += __expf(to_float(x[p].v[v]) - top);
        if (at + v == target) wanted = to_float(x[p].v[v]);
        if constexpr (kPlace) place = min(place, to_float(x[p].v[v]) == top ? at + v : INT_MAX);
      }
  }
  const auto plus = [](float a, float b) { return a + b; };
  sum = over_row<kWarps>(warp_sum(sum), plus);
  wanted = over_row<kWarps>(warp_sum(wanted), plus);
  const bool counts = target >= 0;
  if (thread == 0) losses[row] = counts ? top + logf(sum) - wanted : 0.0f;
  if constexpr (kPlace) {
    place = first_of_row<kWarps>(place);
    if (largest && thread == 0) largest[row] = told_place(counts, top, place);
  }
  if (!gradient) return;
  const float factor = counts ? scale / sum : 0.0f, pull = counts ? penalty * top : 0.0f;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const int at = (thread + p * 32 * kWarps) * V;
    if (at >= n) continue;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      float g = __expf(to_float(x[p].v[v]) - top) * factor - (at + v == target ? scale : 0.0f);
      if constexpr (kPlace) g += at + v == place ? pull : 0.0f;
      x[p].v[v] = from_float<T>(g);
    }
    store_pack(logits + at, x[p]);
  }
}

__global__ void __launch_bounds__(1024) mean_kernel(const float* x, float* mean, int64_t n) {
  __shared__ double parts[32];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += 1024) sum += static_cast<double>(x[i]);
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  sum = 0;
  for (double part : parts) sum += part;
  *mean = static_cast<float>(sum / static_cast<double>(n));
}

template <bool kPlace>
void launch_softmax(Stream stream, const Tensor& logits, const int32_t* targets, float* losses, int32_t* largest, int64_t rows,
                    bool gradient, double scale, double penalty) {
  const float scaled = static_cast<float>(scale), pull = static_cast<float>(scale * penalty);
  const int n = static_cast<int>(logits.dim(-1));
  dispatch_cuda(logits.dtype(), [&](auto t) {
    using T = decltype(t);
    const auto packed = [&](auto warps, auto packs) {
      constexpr int kWarps = decltype(warps)::value;
      const unsigned blocks = kWarps == 1 ? blocks_for(rows, kRowsOfWarps) : static_cast<unsigned>(rows);
      softmax_packed_kernel<kWarps, decltype(packs)::value, kPlace><<<blocks, kWarps == 1 ? 32 * kRowsOfWarps : 32 * kWarps, 0, stream>>>(
          pointer<T>(logits), targets, losses, largest, rows, n, gradient, scaled, pull);
    };
    const int packs = n % kVector<T> == 0 ? n / kVector<T> : INT_MAX;
    if (packs <= 64)
      packed(std::integral_constant<int, 1>{}, std::integral_constant<int, 2>{});
    else if (packs <= 128)
      packed(std::integral_constant<int, 1>{}, std::integral_constant<int, 4>{});
    else if (packs <= 512)
      packed(std::integral_constant<int, 4>{}, std::integral_constant<int, 4>{});
    else if (packs <= 1024)
      packed(std::integral_constant<int, 4>{}, std::integral_constant<int, 8>{});
    else if (!hopper_softmax_cross_entropy(stream, logits, targets, losses, largest, rows, gradient, scale, penalty))
      softmax_kernel<512, kPlace>
          <<<static_cast<unsigned>(rows), 512, 0, stream>>>(pointer<T>(logits), targets, losses, largest, n, gradient, scaled, pull);
  });
  check_launch();
}

}  // namespace

void softmax_cross_entropy(Stream stream, const Tensor& logits, const int32_t* targets, float* losses, int32_t* largest, int64_t rows,
                           bool gradient, double scale, double penalty) {
  const auto launch = penalty > 0 || largest ? launch_softmax<true> : launch_softmax<false>;
  launch(stream, logits, targets, losses, largest, rows, gradient, scale, penalty);
}

void mean(Stream stream, const Tensor& x, const Tensor& result) {
  mean_kernel<<<1, 1024, 0, stream>>>(pointer<float>(x), pointer<float>(result), x.size());
  check_launch();
}

}  // namespace saccade::cuda
