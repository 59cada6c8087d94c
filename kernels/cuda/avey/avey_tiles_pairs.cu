// First half of the contextualizer's backward: W, M, the sums of e and d_A from recomputed products of tiles.
#include "kernels/cuda/avey/avey_tiles.cuh"
#include "kernels/ops/avey/context_weights.h"
#include "kernels/ops/avey/contextualizer_cuda.h"

namespace saccade::cuda::tiles {
namespace {

template <bool kLarge>
constexpr int stages = kLarge ? kStages : 2;
template <bool kLarge>
constexpr uint32_t shared_bytes = stages<kLarge> * 3 * kPart + (kLarge ? kTile * kTile * 4 : 0);

/// Adds over the warps that share a row (or column) of the tile; sums [kParts, kTile] in shared memory.
template <int kParts>
__device__ __forceinline__ float sum_of(const float* sums, int at) {
  float sum = 0;
#pragma unroll
  for (int part = 0; part < kParts; ++part) sum += sums[part * kTile + at];
  return sum;
}

/// s = Z Zᵀ and d = dY Zᵀ of the queries q0 … and the keys k0 … of a context, which has zeros in rows that it lacks.
template <int kPairStages>
__device__ __forceinline__ void multiply_tiles(Accumulator& s, Accumulator& d, const Plan& p, const Context& context, int q0, int k0,
                                               const bf16* Z, const bf16* dY, uint32_t base) {
  const bf16 *queries[4], *keys[4], *gradients[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = static_cast<int>(threadIdx.x) / 8 + 32 * i;
    const int64_t q = q0 + row < p.C ? context.row(q0 + row) : -1, k = k0 + row < p.C ? context.row(k0 + row) : -1;
    const int64_t y = q0 + row < p.C ? context.result(q0 + row) : -1;
    queries[i] = q < 0 ? nullptr : Z + q * p.r;
    keys[i] = k < 0 ? nullptr : Z + k * p.r;
    gradients[i] = y < 0 ? nullptr : dY + y * p.r;
  }
  clear(s);
  clear(d);
  each_step<kPairStages>((p.r + kDepth - 1) / kDepth,
                         [&](int step, int stage) {
                           const uint32_t at = base + static_cast<uint32_t>(stage) * 3 * kPart;
                           copy_rows(at, Z, step * kDepth, p.r, [&](int, int i) { return queries[i]; });
                           copy_rows(at + kPart, Z, step * kDepth, p.r, [&](int, int i) { return gradients[i]; });
                           copy_rows(at + 2 * kPart, Z, step * kDepth, p.r, [&](int, int i) { return keys[i]; });
                         },
                         [&](int, int stage) {
                           const uint32_t at = base + static_cast<uint32_t>(stage) * 3 * kPart;
                           multiply_rows<true>(s, d, at, at + kPart, at + 2 * kPart);
                         });
}

/// Sums over a warp's rows, of every column.
__device__ __forceinline__ void put_column_sums(const float (&columns)[kPairs][2], float* to) {
#pragma unroll
  for (int n = 0; n < kPairs; ++n)
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      float sum = columns[n][v];
      sum += __shfl_xor_sync(0xffffffffu, sum, 4);
      sum += __shfl_xor_sync(0xffffffffu, sum, 8);
      sum += __shfl_xor_sync(0xffffffffu, sum, 16);
      if (threadIdx.x % 32 < 4) to[warp_of_column() * kTile + tile_column(n) + v] = sum;
    }
}

/// Block (pair of tiles, group of contexts); what it adds to d_A is one thread's, element by element, and stays in shared memory
/// where that is large enough, else in its place in parts_A.
template <bool kLarge>
__global__ void __launch_bounds__(kThreads, 1)
    pairs_kernel(const Plan p, int groups, const bf16* Z, const float* inverse, const float* A, const bf16* dY, const Products out) {
  extern __shared__ __align__(1024) char shared[];
  constexpr int kPairStages = stages<kLarge>;
  auto* gathered = reinterpret_cast<float2*>(shared + kPairStages * 3 * kPart) + threadIdx.x;
  float* part = out.parts_A + int64_t{blockIdx.y} * p.C * p.C;
  const int2 pair = pair_of(p, p.pairs() - 1 - static_cast<int>(blockIdx.x));  // the last queries are those of all contexts
  const int q0 = p.first_query + pair.x * kTile, k0 = pair.y * kTile;
  const auto place_of_part = [&](int line, int n) -> float2& {
    return *reinterpret_cast<float2*>(part + int64_t{q0 + tile_row(line)} * p.C + k0 + tile_column(n));
  };
  /// Where a pair of elements is gathered.
  const auto place = [&](int line, int n) -> float2& {
    if constexpr (kLarge) return gathered[(line * kPairs + n) * kThreads];
    return place_of_part(line, n);
  };
  const auto each_place = [&](auto&& use) {
#pragma unroll
    for (int line = 0; line < kLines; ++line)
#pragma unroll
      for (int n = 0; n < kPairs; ++n)
        if (q0 + tile_row(line) < p.C && k0 + tile_column(n) < p.C) use(line, n);
  };
  each_place([&](int line, int n) { place(line, n) = make_float2(0, 0); });
  const uint32_t base = shared_address(shared);
  const int begin = static_cast<int>(int64_t{p.contexts} * blockIdx.y / groups);
  const int end = static_cast<int>(int64_t{p.contexts} * (blockIdx.y + 1) / groups);
  for (int index = begin; index < end; ++index) {
    const Context context(p, index);
    if (pair.x < context.first_query_tile(p)) continue;
    Accumulator s, d;
    multiply_tiles<kPairStages>(s, d, p, context, q0, k0, Z, dY, base);
    auto* inverses = reinterpret_cast<float*>(shared);  // of queries, then of keys
    float *row_sums = inverses + 2 * kTile, *column_sums = row_sums + kLineWarps * kTile;
    {
      const int row = static_cast<int>(threadIdx.x) % kTile, position = (threadIdx.x < kTile ? q0 : k0) + row;
      const int64_t at = position < p.C ? context.row(position) : -1;
      inverses[threadIdx.x] = at < 0 ? 0.0f : inverse[at];
    }
    __syncthreads();
    float columns[kPairs][2] = {};
#pragma unroll
    for (int line = 0; line < kLines; ++line) {
      const int row = tile_row(line), t = q0 + row;
      const int64_t to = (int64_t{index} * p.queries() + t - p.first_query) * p.C;
      const float* of_t = A + int64_t{min(t, p.C - 1)} * p.C;
      float sum = 0;
#pragma unroll
      for (int n0 = 0; n0 < kPairs; n0 += 4) {
        uint32_t words_W[4], words_M[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int n = n0 + i, column = tile_column(n), j = k0 + column, first = element(line, n);
          const bool inside = t < p.C && j < p.C;
          const float2 pair_of_a = *reinterpret_cast<const float2*>(of_t + min(j, p.C - 2));
          float w[2], slope[2], along_A[2];
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            const float both = inverses[row] * inverses[kTile + column + v], a = v ? pair_of_a.y : pair_of_a.x;
            const float cosine = s[first + v] * both, gradient = d[first + v];
            const bool causal = inside && j + v <= t;
            w[v] = causal ? a * cosine : 0.0f;
            slope[v] = causal ? gradient * a * both : 0.0f;
            const float e = gradient * w[v];
            sum += e;
            columns[n][v] += e;
            along_A[v] = causal ? gradient * cosine : 0.0f;
          }
          if (inside) {
            float2& sum_A = place(line, n);
            sum_A = make_float2(sum_A.x + along_A[0], sum_A.y + along_A[1]);
          }
          words_W[i] = pack_bf16(w[0], w[1]), words_M[i] = pack_bf16(slope[0], slope[1]);
        }
        store_piece(out.W + to, k0, n0, t < p.C, p.C, words_W);
        store_piece(out.M + to, k0, n0, t < p.C, p.C, words_M);
      }
      sum = quad_sum(sum);
      if (threadIdx.x % 4 == 0) row_sums[warp_of_line() * kTile + row] = sum;
    }
    put_column_sums(columns, column_sums);
    __syncthreads();
    const int at = static_cast<int>(threadIdx.x) % kTile;
    if (threadIdx.x < kTile) {
      if (q0 + at < p.C) out.by_query[(int64_t{index} * p.key_tiles() + pair.y) * p.C + q0 + at] = sum_of<kLineWarps>(row_sums, at);
    } else if (k0 + at < p.C) {
      out.by_key[(int64_t{index} * p.query_tiles() + pair.x) * p.C + k0 + at] = sum_of<kColumnWarps>(column_sums, at);
    }
  }
  if constexpr (kLarge) each_place([&](int line, int n) { place_of_part(line, n) = place(line, n); });
}

/// A block owns 32 elements; warp w adds the groups w, w + 8, …, then the warps' sums are added in order.
__global__ void __launch_bounds__(kThreads)
    sum_weights_kernel(const float* parts, int groups, float* dA, bool add, int C, int first_query) {
  __shared__ float sums[kThreads];
  const int i = static_cast<int>(blockIdx.x * 32 + threadIdx.x % 32), t = i / C, j = i % C;
  float sum = 0;
  if (j <= t && t >= first_query && t < C)
    for (int g = static_cast<int>(threadIdx.x) / 32; g < groups; g += kThreads / 32) sum += parts[int64_t{g} * C * C + i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= 32 || t >= C) return;
  sum = add ? dA[i] : 0.0f;
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) sum += sums[w * 32 + threadIdx.x];
  dA[i] = sum;
}

template <bool kLarge>
void launch(Stream stream, const Plan& p, int groups, const bf16* Z, const float* inverse, const float* A, const bf16* dY,
            const Products& out) {
  check(cudaFuncSetAttribute(pairs_kernel<kLarge>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes<kLarge>));
  pairs_kernel<kLarge><<<dim3(static_cast<unsigned>(p.pairs()), static_cast<unsigned>(groups)), kThreads, shared_bytes<kLarge>, stream>>>(
      p, groups, Z, inverse, A, dY, out);
}

}  // namespace

void pairs_backward(Stream stream, const Plan& p, int groups, const bf16* Z, const float* inverse, const float* A, const bf16* dY,
                    const Products& out) {
  int device = 0, shared = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  (shared >= static_cast<int>(shared_bytes<true>) ? launch<true> : launch<false>)(stream, p, groups, Z, inverse, A, dY, out);
}

void sum_weights(Stream stream, const Plan& p, int groups, const float* parts, float* dA, bool add) {
  sum_weights_kernel<<<blocks_for(int64_t{p.C} * p.C, 32), kThreads, 0, stream>>>(parts, groups, dA, add, p.C, p.first_query);
}

}  // namespace saccade::cuda::tiles
