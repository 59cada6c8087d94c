// Gradients of Y = W Z (formulas in avey_tiles_backward.cu) of contexts that are one tile each: two warpgroups have 64 queries each, in the
// products with W and M 64 keys each.
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/avey_one_tile.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/turns.cuh"
#include "kernels/cuda/values.cuh"

namespace saccade::cuda::tiles {
namespace {

using namespace one_tile;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/// The same value, of which the compiler keeps no addresses from one context to the next: there are no registers for them.
template <class T>
__device__ __forceinline__ T anew(T value) {
  if constexpr (sizeof(T) == 8)
    asm volatile("" : "+l"(value));
  else
    asm volatile("" : "+r"(value));
  return value;
}
/// d [64 x 64] = (first ? 0 : d) + a bᵀ over 16 terms of the sum, in the background.
__device__ __forceinline__ void multiply_half(float (&d)[32], uint64_t a, uint64_t b, bool first) {
  asm volatile(
      "{\n.reg .pred more;\nsetp.ne.b32 more, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, "
      "%28, %29, %30, %31}, %32, %33, more, 1, 1, 0, 0;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]),
        "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]),
        "+f"(d[31])
      : "l"(a), "l"(b), "r"(static_cast<int>(!first)));
}

/// s = x zᵀ, d = dy zᵀ of this warpgroup's 64 queries and 64 keys.
__device__ __forceinline__ void multiply_pairs(float (&s)[32], float (&d)[32], const Plan& p, uint32_t z, uint32_t dy, int keys) {
  const uint32_t rows = static_cast<uint32_t>(group()) * (kBlock / 2), of_keys = z + static_cast<uint32_t>(keys) * (kBlock / 2);
  begin_products();
  int block = 0;
  do {
    const uint32_t at = static_cast<uint32_t>(block) * kBlock;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const bool first = block == 0 && k == 0;
      multiply_half(s, descriptor(z + at + rows + 32 * k, 16), descriptor(of_keys + at + 32 * k, 16), first);
      multiply_half(d, descriptor(dy + at + rows + 32 * k, 16), descriptor(of_keys + at + 32 * k, 16), first);
    }
  } while (++block < blocks_of(p.r));
  end_products();
  wait_products<0>();
  hopper::hold(s);
  hopper::hold(d);
}
#endif

/// What a block of the backward has in shared memory besides z and d_y, as far as they reach.
struct Besides {
  uint32_t w, m;
  float *norms, *pulls, *columns;  ///< [128], [128], [8 warps, 128]
  float* sums;                     ///< [8 warps, columns]: of the gradients' rows
  static constexpr uint32_t kBytes = 4 * kBlock + (2 + kThreads / 32) * kTile * 4 + kThreads / 32 * kOneTileColumns * 4;
  __device__ Besides(char* shared, uint32_t offset) {
    w = shared_address(shared) + offset, m = w + 2 * kBlock;
    norms = reinterpret_cast<float*>(shared + offset + 4 * kBlock), pulls = norms + kTile, columns = pulls + kTile,
    sums = columns + kThreads / 32 * kTile;
  }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/// This lane's pairs of A for its 64 queries and 64 keys.
using OfPairs = float2[8][2];
template <int kKeys>
__device__ __forceinline__ void ask(const Plan& p, const float* A, OfPairs& a) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float* of_t = anew(A) + min(line(half), p.C - 1) * p.C;
#pragma unroll
    for (int n = 0; n < 8; ++n) a[n][half] = *reinterpret_cast<const float2*>(of_t + min(64 * kKeys + column_of(n), p.C - 2));
  }
}

/// Where a lane points at for eight rows of eight values: of the warp's 16 rows, columns 8 n … 8 n + 15 of a block.
__device__ __forceinline__ uint32_t matrices_at(uint32_t block, int n) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return SharedRows<64>{block}.at(static_cast<int>(threadIdx.x) / 32 * 16 + lane % 16, n + lane / 16);
}

/// Of 64 queries and 64 keys: W and M into shared memory, d_A, sums of e over keys and, into shared memory, over a warp's queries.
template <int kKeys>
__device__ __forceinline__ void weigh(const OfPairs& of_pairs, const float (&s)[32], const float (&d)[32], float (&d_A)[32],
                                      float (&sums)[2], const Besides& at) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int n0 = 0; n0 < 8; n0 += 4) {
    float columns[32] = {};
#pragma unroll
    for (int n = n0; n < n0 + 4; n += 2) {
      float w[8], m[8];
#pragma unroll
      for (int x = 0; x < 8; ++x) {
        const int i = n + x / 4, half = x / 2 % 2, v = x % 2, e = 4 * n + x, t = line(half), j = 64 * kKeys + column_of(i) + v;
        const float a = v ? of_pairs[i][half].y : of_pairs[i][half].x, both = at.norms[t] * at.norms[j];
        const float cosine = s[e] * both, gradient = j <= t ? d[e] : 0.0f;
        w[x] = j <= t ? a * cosine : 0.0f;
        m[x] = gradient * a * both;
        d_A[e] += gradient * cosine;
        sums[half] += gradient * w[x];
        columns[2 * (i - n0) + v] += gradient * w[x];
      }
      turns::store_matrices(matrices_at(at.w + kKeys * kBlock, n), w);
      turns::store_matrices(matrices_at(at.m + kKeys * kBlock, n), m);
    }
    fused::add_halves<8>(columns, 16);
    fused::add_halves<4>(columns, 8);
    fused::add_halves<2>(columns, 4);
    at.columns[warp * kTile + 64 * kKeys + 8 * (n0 + lane / 8) + lane % 4 * 2 + lane / 4 % 2] = columns[0];
  }
}

/// c = Wᵀ d_Y + Mᵀ Z + M Z of this warpgroup's 64 keys and 128 columns, those above the diagonal left out.
__device__ __forceinline__ void multiply_gradients(float (&c)[64], uint32_t z, uint32_t dy, const Besides& at) {
  const auto g = static_cast<uint32_t>(group());
  begin_products();
  uint32_t k = 4 * g;
  do {
    const uint32_t queries = g * kBlock + 2048 * k;
    multiply_background<true, true>(c, descriptor(at.w + queries, kBlock), descriptor(dy + 2048 * k, kBlock), k == 4 * g);
    multiply_background<true, true>(c, descriptor(at.m + queries, kBlock), descriptor(z + 2048 * k, kBlock), false);
  } while (++k < 8);
  k = 0;
  do
    multiply_background<false, true>(c, descriptor(at.m + k / 4 * kBlock + g * (kBlock / 2) + 32 * (k % 4), 16),
                                     descriptor(z + 2048 * k, kBlock), false);
  while (++k < 4 * (g + 1));
  end_products();
  wait_products<0>();
  hopper::hold(c);
}
#endif

/// A block takes a group of contexts; what they add to d_A stays in registers. padding [padded contexts, pad_rows, r]: what the padding
/// gets from each context that has some.
__global__ void __launch_bounds__(kThreads, 1)
    backward_kernel(const Plan p, const bf16* Z, const float* inverse, const float* A, const bf16* dY, float* parts_A, bf16* dZ, bool add,
                    Activation slope, float* padding, float* columns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char shared[];
  const uint32_t bytes = static_cast<uint32_t>(blocks_of(p.r)) * kBlock;
  const int begin = static_cast<int>(int64_t{p.contexts} * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(int64_t{p.contexts} * (blockIdx.x + 1) / gridDim.x);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float d_A[2][32] = {};
  for (int i = static_cast<int>(threadIdx.x); i < kThreads / 32 * kOneTileColumns; i += kThreads) Besides(shared, 2 * bytes).sums[i] = 0;
  const auto copy_results = [&](int index, uint32_t to) {
    const Context context(p, index);
    copy_context(to, p, dY, [&](int position) { return context.result(position); });
  };
  for (int index = begin; index < end; ++index) {
    const Context context(p, index);
    const uint32_t z = shared_address(shared), dy = z + anew(bytes);
    const Besides at(shared, 2 * anew(bytes));
    __syncthreads();
    copy_context(z, p, Z, [&](int position) { return context.row(position); });
    if (index == begin) copy_results(index, dy);
    if (threadIdx.x < kTile) {
      const int position = static_cast<int>(threadIdx.x), row = position < p.C ? context.row(position) : -1;
      at.norms[position] = row < 0 ? 0.0f : inverse[row];
    }
    copies_are_there();
    {
      float s[32], d[32], sums[2] = {0, 0};
      OfPairs of_pairs;
      ask<0>(p, A, of_pairs);
      multiply_pairs(s, d, p, z, dy, 0);
      weigh<0>(of_pairs, s, d, d_A[0], sums, at);
      if (group() == 1) {
        ask<1>(p, A, of_pairs);
        multiply_pairs(s, d, p, z, dy, 1);
        weigh<1>(of_pairs, s, d, d_A[1], sums, at);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float sum = quad_sum(sums[half]);
        if (lane % 4 == 0) at.pulls[line(half)] = sum;
      }
    }
    publish_copies();
    __syncthreads();
    if (threadIdx.x < kTile) {
      float sum = at.pulls[threadIdx.x];
      for (int warp = static_cast<int>(threadIdx.x) / 64 * 4; warp < kThreads / 32; ++warp)
        sum += at.columns[warp * kTile + static_cast<int>(threadIdx.x)];
      at.pulls[threadIdx.x] = sum * at.norms[threadIdx.x] * at.norms[threadIdx.x];
    }
    __syncthreads();
    const int64_t N = p.layout.splits(), k = p.layout.top_k, slot = index / N * min(N, k) + index % N;
    float* of_padding = padding + slot * p.layout.pad_rows() * p.r;
    int rows[2];
    float pulls[2];
    bool of_all[2];  ///< rows of the padding
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int position = line(half);
      rows[half] = position < p.C ? context.row(position) : -1, pulls[half] = at.pulls[position], of_all[half] = position < context.before;
    }
    for (int first = 0; first < p.r; first += kTile) {
      float c[64];
      const uint32_t offset = static_cast<uint32_t>(first / 64) * kBlock;
      multiply_gradients(c, z + offset, dy + offset, at);
      const bool last = first + kTile >= p.r;
      if (last && index + 1 < end) {  // d_Y is done with
        __syncthreads();
        copy_results(index + 1, dy);
      }
#pragma unroll
      for (int n0 = 0; n0 < 16; n0 += 4) {
        uint32_t of_z[2][4], words[2][4];
        float of_columns[32] = {};
#pragma unroll
        for (int i = 0; i < 2; ++i) load_matrices(of_z[i], matrices_at(z + offset + n0 / 8 * kBlock, n0 % 8 + 2 * i));
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int e = (n0 + i) * 4 + half * 2, column = first + column_of(n0 + i);
            const uint32_t pair = of_z[i / 2][i % 2 * 2 + half];
            const float values[2] = {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
            float gradient[2] = {c[e] - pulls[half] * values[0], c[e + 1] - pulls[half] * values[1]};
            const bool inside = rows[half] >= 0 && column < p.r;
            if (inside && of_all[half])
              *reinterpret_cast<float2*>(of_padding + int64_t{rows[half]} * p.r + column) = make_float2(gradient[0], gradient[1]);
            if (add && inside && !of_all[half]) {
              const bf16* before = dZ + int64_t{rows[half]} * p.r + column;
              gradient[0] += to_float(before[0]), gradient[1] += to_float(before[1]);
            }
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              gradient[v] *= slope_of_kept(slope, values[v]);
              of_columns[2 * i + v] += inside && !of_all[half] ? gradient[v] : 0.0f;
            }
            words[half][i] = pack_bf16(gradient[0], gradient[1]);
          }
        if (columns) {
          fused::add_halves<8>(of_columns, 16);
          fused::add_halves<4>(of_columns, 8);
          fused::add_halves<2>(of_columns, 4);
          at.sums[static_cast<int>(threadIdx.x) / 32 * kOneTileColumns + first + 8 * (n0 + lane / 8) + lane % 4 * 2 + lane / 4 % 2] +=
              of_columns[0];
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          gather_piece(words[half]);
          const int column = first + 8 * (n0 + lane % 4);
          if (rows[half] >= 0 && !of_all[half] && column < p.r)
            *reinterpret_cast<uint4*>(dZ + int64_t{rows[half]} * p.r + column) =
                make_uint4(words[half][0], words[half][1], words[half][2], words[half][3]);
        }
      }
    }
  }
  __syncthreads();
  if (columns && static_cast<int>(threadIdx.x) < p.r) {
    const float* sums = Besides(shared, 2 * bytes).sums + threadIdx.x;
    float sum = 0;
    for (int warp = 0; warp < kThreads / 32; ++warp) sum += sums[warp * kOneTileColumns];
    columns[blockIdx.x * p.r + threadIdx.x] = sum;
  }
  float* part = parts_A + int64_t{blockIdx.x} * p.C * p.C;
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int n = 0; n < 16; ++n) {
      const int t = line(half), j = column_of(n);
      if (t < p.C && j < p.C)
        *reinterpret_cast<float2*>(part + int64_t{t} * p.C + j) =
            make_float2(d_A[n / 8][n % 8 * 4 + half * 2], d_A[n / 8][n % 8 * 4 + half * 2 + 1]);
    }
#endif
}

constexpr int kSumColumns = 32, kSumParts = kThreads / kSumColumns;

/// Block (32 columns, row of the padding): what its contexts gave, in eight parts that are added in order.
__global__ void __launch_bounds__(kThreads)
    sum_padding_kernel(const Plan p, const float* parts, const bf16* Z, bf16* dZ, bool add, Activation slope, float* columns) {
  __shared__ float sums[kThreads];
  const int row = static_cast<int>(blockIdx.y),
            column = static_cast<int>(blockIdx.x) * kSumColumns + static_cast<int>(threadIdx.x) % kSumColumns;
  const int N = static_cast<int>(p.layout.splits()), k = static_cast<int>(p.layout.top_k), rows = static_cast<int>(p.layout.pad_rows());
  const int slots = min(N, k), with_row = min(N, k - row / static_cast<int>(p.layout.split));
  float sum = 0;
  if (column < p.r)
    for (int i = static_cast<int>(threadIdx.x) / kSumColumns; i < p.contexts / N * with_row; i += kSumParts)
      sum += parts[(int64_t{i / with_row * slots + i % with_row} * rows + row) * p.r + column];
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= kSumColumns || column >= p.r) return;
#pragma unroll
  for (int part = 1; part < kSumParts; ++part) sum += sums[part * kSumColumns + static_cast<int>(threadIdx.x)];
  bf16& to = dZ[int64_t{row} * p.r + column];
  sum *= slope_of_kept(slope, to_float(Z[int64_t{row} * p.r + column]));
  to = from_float<bf16>((add ? to_float(to) : 0.0f) + sum);
  if (columns) columns[int64_t{row} * p.r + column] = sum;
}

}  // namespace

void contextualize_one_tile_backward(int device, const Plan& p, int groups, const Tensor& Z, const Tensor& inverse, const Tensor& A,
                                     const Tensor& dY, float* parts_A, const Tensor& dZ, bool add, Activation slope, const Tensor& padding,
                                     const Tensor& columns) {
  Stream queue = stream(device);
  const int64_t pad_rows = p.layout.pad_rows(), before_padding = columns ? columns.dim(0) - pad_rows : 0;
  float* of_groups = pointer_or_null<float>(columns);
  float* of_padding = columns ? of_groups + before_padding * p.r : nullptr;
  if (before_padding > groups) fill_bytes(queue, of_groups + int64_t{groups} * p.r, 0, (before_padding - groups) * p.r * 4);
  constexpr uint32_t kMost = 2 * kMostBlocks * kBlock + Besides::kBytes;
  check(cudaFuncSetAttribute(backward_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMost));
  backward_kernel<<<static_cast<unsigned>(groups), kThreads, 2 * static_cast<uint32_t>(blocks_of(p.r)) * kBlock + Besides::kBytes, queue>>>(
      p, pointer<bf16>(Z), pointer<float>(inverse), pointer<float>(A), pointer<bf16>(dY), parts_A, pointer<bf16>(dZ), add, slope,
      pointer_or_null<float>(padding), of_groups);
  if (pad_rows)
    sum_padding_kernel<<<dim3(blocks_for(p.r, kSumColumns), static_cast<unsigned>(pad_rows)), kThreads, 0, queue>>>(
        p, pointer<float>(padding), pointer<bf16>(Z), pointer<bf16>(dZ), add, slope, of_padding);
  check_launch();
}

}  // namespace saccade::cuda::tiles
