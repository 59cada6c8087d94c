// Gradients of Y = W Z (formulas in avey_tiles_backward.cu) of contexts that are one tile each. Three warpgroups have 64 queries and 64
// keys each, which is all that is causal; in the products with W and M they share out blocks of 64 keys and 64 columns.
#include "kernels/cuda/avey/avey_one_tile.cuh"
#include "kernels/cuda/device/activation.cuh"
#include "kernels/cuda/device/hopper.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/cuda/gemm/ping_pong.cuh"

namespace saccade::cuda::tiles {
namespace {

using namespace one_tile;

constexpr int kGroups = 3, kOwnThreads = 128 * kGroups, kRowWarps = kTile / 16;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/// s = x zᵀ, d = dy zᵀ of 64 queries and 64 keys.
__device__ __forceinline__ void multiply_pairs(float (&s)[32], float (&d)[32], const Plan& p, uint32_t z, uint32_t dy, int queries,
                                               int keys) {
  const uint32_t rows = static_cast<uint32_t>(queries) * (kBlock / 2), of_keys = z + static_cast<uint32_t>(keys) * (kBlock / 2);
  hopper::hold(s);
  hopper::hold(d);
  begin_products();
  int block = 0;
  do {
    const uint32_t at = static_cast<uint32_t>(block) * kBlock;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const bool first = block == 0 && k == 0;
      multiply_background<false, false>(s, descriptor(z + at + rows + 32 * k, 16), descriptor(of_keys + at + 32 * k, 16), first);
      multiply_background<false, false>(d, descriptor(dy + at + rows + 32 * k, 16), descriptor(of_keys + at + 32 * k, 16), first);
    }
  } while (++block < blocks_of(p.r));
  end_products();
  wait_products<0>();
  hopper::hold(s);
  hopper::hold(d);
}
#endif

/// What a block has in shared memory: two buffers that hold z and, two blocks of 64 keys each, W and M, alternately; d_y as far as it
/// reaches.
constexpr uint32_t kBuffer = kMostBlocks * kBlock;
struct SmallArrays {
  float *norms, *pulls, *columns;  ///< [128], [2 blocks of keys, 128], [8 warps, 128]
  float* sums;                     ///< [8 warps, columns]: of the gradients' rows
  static constexpr uint32_t kBytes = (3 + kRowWarps) * kTile * 4 + kRowWarps * kOneTileColumns * 4;
  __device__ explicit SmallArrays(char* at) {
    norms = reinterpret_cast<float*>(at), pulls = norms + kTile, columns = pulls + 2 * kTile, sums = columns + kRowWarps * kTile;
  }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/// Of 64 queries and 64 keys: W and M into shared memory, d_A, sums of e over keys and over a warp's queries.
__device__ __forceinline__ void weigh(const Plan& p, const float* A, OfPairs of_pairs, const float (&s)[32], const float (&d)[32],
                                      float (&d_A)[32], int queries, int keys, uint32_t of_w, const SmallArrays& at) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t w_block = of_w + static_cast<uint32_t>(keys) * kBlock, m_block = w_block + 2 * kBlock;
  float sums[2] = {0, 0};
#pragma unroll
  for (int n0 = 0; n0 < 8; n0 += 4) {
    float columns[32] = {};
#pragma unroll
    for (int n = n0; n < n0 + 4; n += 2) {
      const OfPairs following(p, A, queries, keys, min(n + 2, 6));
      float w[8], m[8];
#pragma unroll
      for (int x = 0; x < 8; ++x) {
        const int i = n + x / 4, half = x / 2 % 2, v = x % 2, e = 4 * n + x, t = line_of(queries, half), j = 64 * keys + column_of(i) + v;
        const float a = v ? of_pairs.a[x / 4][half].y : of_pairs.a[x / 4][half].x, both = at.norms[t] * at.norms[j];
        const float cosine = s[e] * both, gradient = j <= t ? d[e] : 0.0f;
        w[x] = j <= t ? a * cosine : 0.0f;
        m[x] = gradient * a * both;
        d_A[e] += gradient * cosine;
        sums[half] += gradient * w[x];
        columns[2 * (i - n0) + v] += gradient * w[x];
      }
      ping_pong::store_matrices(matrices_at(w_block, queries, n), w);
      ping_pong::store_matrices(matrices_at(m_block, queries, n), m);
      of_pairs = following;
    }
    fused::add_halves<8>(columns, 16);
    fused::add_halves<4>(columns, 8);
    fused::add_halves<2>(columns, 4);
    at.columns[(4 * queries + warp_of_rows()) * kTile + 64 * keys + 8 * (n0 + lane / 8) + lane % 4 * 2 + lane / 4 % 2] = columns[0];
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = quad_sum(sums[half]);
    if (lane % 4 == 0) at.pulls[keys * kTile + line_of(queries, half)] = sum;
  }
}

/// c = Wᵀ d_Y + Mᵀ Z + M Z of 64 keys and 64 columns, those above the diagonal left out; in the background.
__device__ __forceinline__ void multiply_gradients(float (&c)[32], uint32_t z, uint32_t dy, uint32_t w, int rows) {
  const uint32_t g = static_cast<uint32_t>(rows), m = w + 2 * kBlock;
  uint32_t k = 4 * g;
  do {
    const uint32_t queries = g * kBlock + 2048 * k;
    multiply_background<true, true>(c, descriptor(w + queries, kBlock), descriptor(dy + 2048 * k, kBlock), k == 4 * g);
    multiply_background<true, true>(c, descriptor(m + queries, kBlock), descriptor(z + 2048 * k, kBlock), false);
  } while (++k < 8);
  k = 0;
  do
    multiply_background<false, true>(c, descriptor(m + k / 4 * kBlock + g * (kBlock / 2) + 32 * (k % 4), 16),
                                     descriptor(z + 2048 * k, kBlock), false);
  while (++k < 4 * (g + 1));
}

/// What a context's backward pass writes.
struct Gradients {
  bf16* dZ;
  bool add;
  float* of_padding;  ///< [pad_rows, r] of this context
};

/// By a warpgroup: `c`, 64 keys (of the upper or lower half, `keys_of_c`) by 64 columns from `first` on, less what norms pull, becomes the
/// gradient of Z's rows; `z`: the block of Z that holds them. With kColumns its column sums go to `at`.
template <Activation kSlope, bool kColumns>
__device__ __forceinline__ void put_gradients(const Plan& p, const Context& context, const SmallArrays& at, const float (&c)[32],
                                              uint32_t z, int keys_of_c, int first, const Gradients& out) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int rows[2];
  float pulls[2];
  bool of_all[2];  ///< rows of the padding
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int position = line_of(keys_of_c, half);
    rows[half] = position < p.C ? context.row(position) : -1, pulls[half] = at.pulls[position], of_all[half] = position < context.before;
  }
#pragma unroll
  for (int n0 = 0; n0 < 8; n0 += 4) {
    uint32_t of_z[2][4], words[2][4];
    float of_columns[32] = {};
#pragma unroll
    for (int i = 0; i < 2; ++i) load_matrices(of_z[i], matrices_at(z, keys_of_c, n0 + 2 * i));
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
          *reinterpret_cast<float2*>(out.of_padding + int64_t{rows[half]} * p.r + column) = make_float2(gradient[0], gradient[1]);
        if (kSlope == Activation::none && out.add && inside && !of_all[half]) {
          const bf16* before = out.dZ + int64_t{rows[half]} * p.r + column;
          gradient[0] += to_float(before[0]), gradient[1] += to_float(before[1]);
        }
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          gradient[v] *= slope_of_value<kSlope>(values[v]);
          if (kColumns) of_columns[2 * i + v] += inside && !of_all[half] ? gradient[v] : 0.0f;
        }
        words[half][i] = pack_bf16(gradient[0], gradient[1]);
      }
    if constexpr (kColumns) {
      fused::add_halves<8>(of_columns, 16);
      fused::add_halves<4>(of_columns, 8);
      fused::add_halves<2>(of_columns, 4);
      at.sums[(4 * keys_of_c + warp_of_rows()) * kOneTileColumns + first + 8 * (n0 + lane / 8) + lane % 4 * 2 + lane / 4 % 2] +=
          of_columns[0];
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      gather_piece(words[half]);
      const int column = first + 8 * (n0 + lane % 4);
      if (rows[half] >= 0 && !of_all[half] && column < p.r)
        *reinterpret_cast<uint4*>(out.dZ + int64_t{rows[half]} * p.r + column) =
            make_uint4(words[half][0], words[half][1], words[half][2], words[half][3]);
    }
  }
}
#endif

/// A block takes a group of contexts; what they add to d_A stays in registers. padding [padded contexts, pad_rows, r]: what the padding
/// gets from each context that has some.
template <Activation kSlope, bool kColumns>
__global__ void __launch_bounds__(kOwnThreads, 1)
    backward_kernel(const Plan p, const bf16* Z, const float* inverse, const float* A, const bf16* dY, float* parts_A, bf16* dZ, bool add,
                    float* padding, float* columns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kMostTasks = (2 * kMostBlocks + kGroups - 1) / kGroups;  // of a warpgroup
  extern __shared__ __align__(1024) char shared[];
  const uint32_t base = shared_address(shared), behind = 2 * kBuffer + static_cast<uint32_t>(blocks_of(p.r)) * kBlock;
  const int begin = static_cast<int>(int64_t{p.contexts} * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(int64_t{p.contexts} * (blockIdx.x + 1) / gridDim.x);
  const int lane = static_cast<int>(threadIdx.x) % 32, group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0);
  const int queries = min(group, 1), keys = group / 2, tasks = 2 * ((p.r + 63) / 64);
  float d_A[32] = {};
  for (int i = static_cast<int>(threadIdx.x); i < kRowWarps * kOneTileColumns; i += kOwnThreads) SmallArrays(shared + behind).sums[i] = 0;
  const auto norm_of = [&](const Context& context) {
    const int position = static_cast<int>(threadIdx.x), row = position < p.C ? context.row(position) : -1;
    return row < 0 ? 0.0f : inverse[row];
  };
  const auto copy = [&](const Context& context, uint32_t z) {
    copy_context<kOwnThreads>(z, p, Z, [&](int position) { return context.row(position); });
    copy_context<kOwnThreads>(base + 2 * kBuffer, p, dY, [&](int position) { return context.result(position); });
  };
  {
    const Context context(p, begin);
    copy(context, base);
    if (threadIdx.x < kTile) SmallArrays(shared + behind).norms[threadIdx.x] = norm_of(context);
  }
  for (int index = begin; index < end; ++index) {
    const Context context(p, index);
    const uint32_t flip = static_cast<uint32_t>(index - begin) % 2, from = anew(base);
    const uint32_t z = from + flip * kBuffer, w = from + (1 - flip) * kBuffer, dy = from + 2 * kBuffer;
    const SmallArrays at(shared + anew(behind));
    copies_are_there();
    {
      float s[32] = {}, d[32] = {};
      const int of_queries = anew(queries), of_keys = anew(keys);
      const OfPairs of_pairs(p, A, of_queries, of_keys, 0);
      multiply_pairs(s, d, p, z, dy, of_queries, of_keys);
      weigh(p, A, of_pairs, s, d, d_A, of_queries, of_keys, w, at);
      publish_copies();
    }
    __syncthreads();
    if (threadIdx.x < kTile) {
      const int position = static_cast<int>(threadIdx.x);
      float sum = at.pulls[position] + (position < 64 ? 0.0f : at.pulls[kTile + position]);
      for (int warp = position / 64 * 4; warp < kRowWarps; ++warp) sum += at.columns[warp * kTile + position];
      at.pulls[position] = sum * at.norms[position] * at.norms[position];
    }
    float c[kMostTasks][32] = {};
#pragma unroll
    for (int i = 0; i < kMostTasks; ++i) hopper::hold(c[i]);
    begin_products();
#pragma unroll
    for (int i = 0; i < kMostTasks; ++i) {
      const int task = group + kGroups * i;
      if (task >= tasks) break;
      const uint32_t block = static_cast<uint32_t>(task / 2) * kBlock;
      multiply_gradients(c[i], z + block, dy + block, w, task % 2);
    }
    end_products();
    wait_products<0>();
#pragma unroll
    for (int i = 0; i < kMostTasks; ++i) hopper::hold(c[i]);
    __syncthreads();
    float next_norm = 0;
    if (index + 1 < end) {  // W, M and d_Y are done with
      const Context next(p, index + 1);
      copy(next, w);
      if (threadIdx.x < kTile) next_norm = norm_of(next);
    }
    const int N = p.layout.splits(), slot = index / N * min(N, p.layout.top_k) + index % N;
    float* of_padding = padding + int64_t{slot} * p.layout.pad_rows() * p.r;
#pragma unroll
    for (int i = 0; i < kMostTasks; ++i) {
      const int task = group + kGroups * i;
      if (task >= tasks) break;
      put_gradients<kSlope, kColumns>(p, context, at, c[i], z + static_cast<uint32_t>(task / 2) * kBlock, task % 2, task / 2 * 64,
                                      {dZ, add, of_padding});
    }
    if (index + 1 < end && threadIdx.x < kTile) at.norms[threadIdx.x] = next_norm;
  }
  __syncthreads();
  if (kColumns && static_cast<int>(threadIdx.x) < p.r) {
    const SmallArrays at(shared + behind);
    float sum = 0;
    for (int warp = 0; warp < kRowWarps; ++warp) sum += at.sums[warp * kOneTileColumns + static_cast<int>(threadIdx.x)];
    columns[blockIdx.x * p.r + threadIdx.x] = sum;
  }
  float* part = parts_A + int64_t{blockIdx.x} * p.C * p.C;
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const int t = line_of(queries, half), j = 64 * keys + column_of(n);
      if (t < p.C && j < p.C)
        *reinterpret_cast<float2*>(part + int64_t{t} * p.C + j) = make_float2(d_A[n * 4 + half * 2], d_A[n * 4 + half * 2 + 1]);
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
  const int N = p.layout.splits(), k = p.layout.top_k, size = p.layout.pad_rows() * p.r, slots = min(N, k);
  float sum = 0;
  if (column < p.r) {
    const float* of_row = parts + row * p.r + column;
    for (int i = 0; i < min(N, k - row / p.layout.split); ++i)
#pragma unroll 4
      for (int b = static_cast<int>(threadIdx.x) / kSumColumns; b < p.layout.batch; b += kSumParts)
        sum += of_row[int64_t{b * slots + i} * size];
  }
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
  const int64_t pad_rows = p.layout.pad_rows();
  float* of_groups = pointer_or_null<float>(columns);
  float* of_padding = columns ? of_groups + int64_t{groups} * p.r : nullptr;
  const uint32_t bytes = 2 * kBuffer + static_cast<uint32_t>(blocks_of(p.r)) * kBlock + SmallArrays::kBytes;
  with_slope(slope, [&](auto f) {
    const auto launch = [&](auto kernel) {
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 3 * kBuffer + SmallArrays::kBytes));
      kernel<<<static_cast<unsigned>(groups), kOwnThreads, bytes, queue>>>(p, pointer<bf16>(Z), pointer<float>(inverse), pointer<float>(A),
                                                                           pointer<bf16>(dY), parts_A, pointer<bf16>(dZ), add,
                                                                           pointer_or_null<float>(padding), of_groups);
    };
    launch(columns ? backward_kernel<decltype(f)::value, true> : backward_kernel<decltype(f)::value, false>);
  });
  if (pad_rows)
    sum_padding_kernel<<<dim3(blocks_for(p.r, kSumColumns), static_cast<unsigned>(pad_rows)), kThreads, 0, queue>>>(
        p, pointer<float>(padding), pointer<bf16>(Z), pointer<bf16>(dZ), add, slope, of_padding);
  check_launch();
}

}  // namespace saccade::cuda::tiles
