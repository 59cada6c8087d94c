// W = tril(A) * Cos(Z) and Y = W Z of contexts that are one tile each: three of four warpgroups have 64 queries and 64 keys each, which is
// all that is causal; in the product with W all share out blocks of 64 queries and 64 columns.
#include "kernels/cuda/avey/avey_one_tile.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/cuda/gemm/ping_pong.cuh"
#include "kernels/ops/avey/context_weights.h"

namespace saccade::cuda::tiles {
namespace {

using namespace one_tile;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/// to = from where `wanted`; written so that sums stay in registers.
__device__ __forceinline__ void take_if(float& to, float from, bool wanted) {
  asm("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p mov.f32 %0, %1;\n}\n" : "+f"(to) : "f"(from), "r"(static_cast<int>(wanted)));
}
#endif

constexpr uint32_t kBuffer = kMostBlocks * kBlock, kWeights = 2 * kBlock;
constexpr int kGroups = 4, kOwnThreads = 128 * kGroups;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/// 1 / |z| of 64 positions from their products with each other, into shared memory and, for rows that this context stands for, `inverse`.
__device__ __forceinline__ void take_norms(const float (&s)[32], const Plan& p, const Context& context, bool first_of_all, int rows,
                                           float* norms, float* inverse) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int position = line_of(rows, half), row = position < p.C ? context.row(position) : -1;
    float even = 0, odd = 0;  // of the diagonal, where this lane has some of it
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      take_if(even, s[n * 4 + half * 2], position % 64 / 8 == n);
      take_if(odd, s[n * 4 + half * 2 + 1], position % 64 / 8 == n);
    }
    if (lane % 4 != lane / 8) continue;
    const float norm = row < 0 ? 0.0f : rsqrtf((lane / 4 % 2 ? odd : even) + static_cast<float>(avey::kCosineEps));
    norms[position] = norm;
    if (row >= 0 && (position >= context.before || first_of_all)) inverse[row] = norm;
  }
}

/// W of 64 queries and 64 keys into shared memory.
__device__ __forceinline__ void weigh(const Plan& p, const float* A, OfPairs of_pairs, const float (&s)[32], int queries, int keys,
                                      uint32_t w, const float* norms) {
#pragma unroll
  for (int n = 0; n < 8; n += 2) {
    const OfPairs following(p, A, queries, keys, min(n + 2, 6));
    float x[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int half = e / 2 % 2, t = line_of(queries, half), j = 64 * keys + column_of(n + e / 4) + e % 2;
      const float2 a = of_pairs.a[e / 4][half];
      x[e] = j <= t ? (e % 2 ? a.y : a.x) * s[4 * n + e] * (norms[t] * norms[j]) : 0.0f;
    }
    ping_pong::store_matrices(matrices_at(w + static_cast<uint32_t>(keys) * kBlock, queries, n), x);
    of_pairs = following;
  }
}
#endif

/// A block takes contexts one after the other; the rows of the next one come while it works.
__global__ void __launch_bounds__(kOwnThreads, 1)
    forward_kernel(const Plan p, const bf16* Z, const float* A, float* inverse, bf16* Y, const bf16* gate, bf16* gated) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kMostTasks = 2 * kMostBlocks / kGroups;  // of a warpgroup
  extern __shared__ __align__(1024) char shared[];
  __shared__ float norms[kTile];
  const uint32_t base = shared_address(shared);
  const int begin = static_cast<int>(int64_t{p.contexts} * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(int64_t{p.contexts} * (blockIdx.x + 1) / gridDim.x);
  const int lane = static_cast<int>(threadIdx.x) % 32, group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0);
  const int queries = min(group, 1), keys = group / 2, tasks = 2 * ((p.r + 63) / 64);  // of a pair; the last group only helps with W Z
  const auto fetch = [&](int index) {
    const Context context(p, index);
    copy_context<kOwnThreads>(base + static_cast<uint32_t>(index - begin) % 2 * kBuffer, p, Z,
                              [&](int position) { return context.row(position); });
    for (int i = static_cast<int>(threadIdx.x); gated && i < kTile * kMostBlocks; i += kOwnThreads) {
      const int position = i / kMostBlocks, column = i % kMostBlocks * 64, row = position < p.C ? context.result(position) : -1;
      if (row >= 0 && column < p.r) asm volatile("prefetch.global.L2 [%0];" ::"l"(gate + int64_t{row} * p.r + column));
    }
  };
  fetch(begin);
  for (int index = begin; index < end; ++index) {
    const Context context(p, index);
    const uint32_t z = anew(base) + static_cast<uint32_t>(index - begin) % 2 * kBuffer, w = anew(base) + 2 * kBuffer;
    copies_are_there();
    if (index + 1 < end) fetch(index + 1);
    const int of_queries = anew(queries), of_keys = anew(keys);
    float s[32] = {};
    OfPairs of_pairs(p, A, of_queries, of_keys, 0);
    begin_products();
    int block = 0;
    do {
      const uint32_t at = z + static_cast<uint32_t>(block) * kBlock;
#pragma unroll
      for (int k = 0; k < 4; ++k)
        multiply_background<false, false>(s, descriptor(at + static_cast<uint32_t>(of_queries) * (kBlock / 2) + 32 * k, 16),
                                          descriptor(at + static_cast<uint32_t>(of_keys) * (kBlock / 2) + 32 * k, 16),
                                          block == 0 && k == 0);
    } while (++block < blocks_of(p.r));
    end_products();
    wait_products<0>();
    hopper::hold(s);
    if (group < 3 && of_queries == of_keys) take_norms(s, p, context, index == 0, of_queries, norms, inverse);
    __syncthreads();
    if (group < 3) weigh(p, A, of_pairs, s, of_queries, of_keys, w, norms);
    publish_copies();
    __syncthreads();
    float y[kMostTasks][32] = {};
#pragma unroll
    for (int i = 0; i < kMostTasks; ++i) hopper::hold(y[i]);
    begin_products();
#pragma unroll
    for (int i = 0; i < kMostTasks; ++i) {
      const int task = min(group + kGroups * i, tasks - 1);
      const auto g = static_cast<uint32_t>(task % 2);
      uint32_t k = 0;
      do
        multiply_background<false, true>(y[i], descriptor(w + k / 4 * kBlock + g * (kBlock / 2) + 32 * (k % 4), 16),
                                         descriptor(z + static_cast<uint32_t>(task / 2) * kBlock + 2048 * k, kBlock), k == 0);
      while (++k < 4 * (g + 1));
    }
    end_products();
    wait_products<0>();
#pragma unroll
    for (int i = 0; i < kMostTasks; ++i) hopper::hold(y[i]);
#pragma unroll
    for (int i = 0; i < kMostTasks; ++i) {
      const int task = group + kGroups * i;
      if (task >= tasks) break;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int position = line_of(task % 2, half), row = position < p.C ? context.result(position) : -1;
        Pack<bf16> of_gate[2];
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          const int column = task / 2 * 64 + 8 * (4 * part + lane % 4);
          of_gate[part] = gated && row >= 0 && column < p.r ? load_pack(gate + int64_t{row} * p.r + column) : Pack<bf16>{};
        }
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          const int column = task / 2 * 64 + 8 * (4 * part + lane % 4);
          uint32_t words[4];
#pragma unroll
          for (int n = 0; n < 4; ++n) words[n] = pack_bf16(y[i][(4 * part + n) * 4 + half * 2], y[i][(4 * part + n) * 4 + half * 2 + 1]);
          gather_piece(words);
          if (row < 0 || column >= p.r) continue;
          const int64_t to = int64_t{row} * p.r + column;
          const uint4 piece = make_uint4(words[0], words[1], words[2], words[3]);
          if (Y != gated) *reinterpret_cast<uint4*>(Y + to) = piece;
          if (gated) store_pack(gated + to, times(piece, of_gate[part]));
        }
      }
    }
  }
#endif
}

}  // namespace

void contextualize_one_tile(int device, const Plan& p, const Tensor& Z, const Tensor& A, const Tensor& inverse, const Tensor& Y,
                            const avey::Gate& gate) {
  constexpr uint32_t kShared = 2 * kBuffer + kWeights;
  check(cudaFuncSetAttribute(forward_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  forward_kernel<<<hopper::persistent_blocks(device, p.contexts), kOwnThreads, kShared, stream(device)>>>(
      p, pointer<bf16>(Z), pointer<float>(A), pointer<float>(inverse), pointer<bf16>(Y), pointer_or_null<bf16>(gate.factor),
      pointer_or_null<bf16>(gate.product));
  check_launch();
}

}  // namespace saccade::cuda::tiles
