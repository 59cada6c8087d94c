// Selection on tensor cores: a block takes kTileRows queries and streams over the keys (or mean keys); nothing but the best
// chunk of each query is kept.
#include "kernels/cuda/attention/attention_pattern.cuh"
#include "kernels/cuda/attention/attention_tiles.cuh"
#include "kernels/ops/top1_chunk/top1_chunk_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kKeys = 64;

struct Problem {
  int length, heads, chunk;
  float factor;  ///< scale · log2 e
  int64_t q_batch, k_batch;
  int rows;  ///< rows of k: keys, or mean keys
};

template <int D>
constexpr int kShared = (kTileRows<D> + 2 * kKeys) * D * 2;

/// Goes over tiles of 64 rows of k and calls f(first row, scores).
template <int D, class Needed, class F>
__device__ __forceinline__ void for_tiles(const Problem& p, const bf16* q, const bf16* k, int first, int count, int end, Needed&& needed,
                                          F&& f) {
  constexpr int M = kRowTiles<D>, N = kKeys / 8;
  extern __shared__ __align__(128) char shared[];
  const int warp = threadIdx.x / 32;
  const int64_t stride = int64_t{p.heads} * D;
  const uint32_t base = shared_address(shared), key_tiles = base + kTileRows<D> * D * 2;
  constexpr uint32_t kTile = kKeys * D * 2;
  const SharedRows<D> queries{base};
  const auto fetch = [&](int row, uint32_t stage) {
    SharedRows<D>{key_tiles + stage * kTile}.template fill<kKeys, kTileThreads>(
        k, [&](int r) { return row + r < p.rows ? k + (row + r) * stride : static_cast<const bf16*>(nullptr); });
    copy_async_commit();
  };
  queries.template fill<kTileRows<D>, kTileThreads>(
      q, [&](int r) { return r < count ? q + (first + r) * stride : static_cast<const bf16*>(nullptr); });
  fetch(0, 0);
  uint32_t fragments[M][D / 16][4];
  uint32_t stage = 0;
  for (int row = 0; row < end; row += kKeys, stage ^= 1) {
    copy_async_wait();
    __syncthreads();
    if (row == 0)
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int c = 0; c < D / 16; ++c) queries.load_a(fragments[m][c], warp * 16 * M + m * 16, c);
    if (row + kKeys < end) fetch(row + kKeys, stage ^ 1);
    if (!needed(row)) continue;
    float s[M][N][4];
    clear(s);
    multiply_rows<M, N, D>(s, fragments, SharedRows<D>{key_tiles + stage * kTile}, 0);
    f(row, s);
  }
}

/// Log mass of a query's chunks, all relative to one shift: Σ 2^(s − shift) of the chunk at hand and of the best so far. The shift
/// is raised (rarely) when a sum leaves the range of floats.
struct Mass {
  float shift, pending, best;
  int chosen;
};

template <int D, int kPart>  // a chunk may end after every kPart columns of eight
__global__ void __launch_bounds__(kTileThreads, 3) exact_kernel(Problem p, const bf16* q, const bf16* k, int32_t* selected) {
  constexpr int M = kRowTiles<D>, N = kKeys / 8;
  constexpr float kLimit = 1e30f;
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kTileRows<D>, count = min(kTileRows<D>, p.length - first);
  const int batch_head = blockIdx.y, b = batch_head / p.heads, h = batch_head % p.heads, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Mass mass[M][2];
  int limit[M][2];  // keys before it belong to candidates
  int least = INT_MAX, most = 0;
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = warp * 16 * M + m * 16 + i * 8 + lane / 4, t = first + min(r, count - 1);
      mass[m][i] = {-INFINITY, 0.0f, 0.0f, -1};
      limit[m][i] = t / p.chunk * p.chunk;
      least = min(least, limit[m][i]), most = max(most, limit[m][i]);
    }
  least = __reduce_min_sync(0xffffffffu, least), most = __reduce_max_sync(0xffffffffu, most);
  const int end = (first + count - 1) / p.chunk * p.chunk;
  for_tiles<D>(
      p, q + b * p.q_batch + h * D, k + b * p.k_batch + h * D, first, count, end, [&](int row) { return row < most; },
      [&](int row, float(&s)[M][N][4]) {
#pragma unroll
        for (int part = 0; part < N; part += kPart) {
          const int key = row + part * 8;
          if (key >= most) continue;
          const bool masked = key + kPart * 8 > least;
#pragma unroll
          for (int m = 0; m < M; ++m)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              Mass& x = mass[m][i];
              const bool candidate = !masked || key < limit[m][i];
              float sum = 0;
#pragma unroll
              for (int n = part; n < part + kPart; ++n)
                sum += exp2_approximate(s[m][n][2 * i] * p.factor - x.shift) + exp2_approximate(s[m][n][2 * i + 1] * p.factor - x.shift);
              if (__any_sync(0xffffffffu, candidate && !(sum < kLimit))) {
                float top = s[m][part][2 * i];
#pragma unroll
                for (int n = part; n < part + kPart; ++n) top = fmaxf(top, fmaxf(s[m][n][2 * i], s[m][n][2 * i + 1]));
                const float raised = fmaxf(x.shift, quad_max(top) * p.factor), scale = exp2_approximate(x.shift - raised);
                if (candidate) {
                  x.shift = raised, x.pending *= scale, x.best *= scale;
                  sum = 0;
#pragma unroll
                  for (int n = part; n < part + kPart; ++n)
                    sum += exp2_approximate(s[m][n][2 * i] * p.factor - raised) + exp2_approximate(s[m][n][2 * i + 1] * p.factor - raised);
                }
              }
              if (candidate) x.pending += sum;
            }
          const int after = key + kPart * 8;
          if (after % p.chunk != 0) continue;
#pragma unroll
          for (int m = 0; m < M; ++m)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              Mass& x = mass[m][i];
              const float total = quad_sum(x.pending);
              if (total > x.best) x.best = total, x.chosen = after / p.chunk - 1;
              x.pending = 0;
            }
        }
      });
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = warp * 16 * M + m * 16 + i * 8 + lane / 4;
      if (r < count && lane % 4 == 0) selected[int64_t{batch_head} * p.length + first + r] = mass[m][i].chosen;
    }
}

template <int D>
__global__ void __launch_bounds__(kTileThreads, 3) approximate_kernel(Problem p, const bf16* q, const bf16* means, int32_t* selected) {
  constexpr int M = kRowTiles<D>, N = kKeys / 8;
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kTileRows<D>, count = min(kTileRows<D>, p.length - first);
  const int batch_head = blockIdx.y, b = batch_head / p.heads, h = batch_head % p.heads, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float best[M][2];
  int chosen[M][2], candidates[M][2];
  const int sure = (first + warp * 16 * M) / p.chunk;  // chunks before it are candidates of all queries of the warp
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      best[m][i] = -INFINITY, chosen[m][i] = -1;
      candidates[m][i] = (first + warp * 16 * M + m * 16 + i * 8 + lane / 4) / p.chunk;
    }
  const int end = (first + count - 1) / p.chunk;
  for_tiles<D>(
      p, q + b * p.q_batch + h * D, means + b * p.k_batch + h * D, first, count, end, [](int) { return true; },
      [&](int row, float(&s)[M][N][4]) {
        const auto offer = [&](auto certain) {
#pragma unroll
          for (int m = 0; m < M; ++m)
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
              for (int n = 0; n < N; ++n)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                  const int c = row + n * 8 + lane % 4 * 2 + e;
                  if ((decltype(certain)::value || c < candidates[m][i]) && s[m][n][2 * i + e] > best[m][i])
                    best[m][i] = s[m][n][2 * i + e], chosen[m][i] = c;
                }
        };
        row + kKeys <= sure ? offer(std::true_type{}) : offer(std::false_type{});
      });
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int step = 1; step < 4; step <<= 1) {
        const float other = __shfl_xor_sync(0xffffffffu, best[m][i], step);
        const int c = __shfl_xor_sync(0xffffffffu, chosen[m][i], step);
        if (other > best[m][i] || (other == best[m][i] && c < chosen[m][i])) best[m][i] = other, chosen[m][i] = c;
      }
      const int r = warp * 16 * M + m * 16 + i * 8 + lane / 4;
      if (r < count && lane % 4 == 0) selected[int64_t{batch_head} * p.length + first + r] = chosen[m][i];
    }
}

}  // namespace

void select_on_tensor_cores(Stream stream, const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& means,
                            const Tensor& selected) {
  const HeadShape& shape = problem.shape;
  const Tensor& rows = means ? means : k;
  const auto batch = [&](const Tensor& x) { return x.dim(0) == 1 && shape.batch > 1 ? 0 : x.size() / x.dim(0); };
  const Problem p{static_cast<int>(shape.length),
                  static_cast<int>(shape.heads),
                  static_cast<int>(problem.options.chunk),
                  static_cast<float>(problem.score.scale) * kLog2e,
                  batch(q),
                  batch(rows),
                  static_cast<int>(rows.dim(1))};
  for_width(shape.width, [&](auto width) {
    constexpr int D = decltype(width)::value;
    const dim3 grid(blocks_for(shape.length, kTileRows<D>), static_cast<unsigned>(shape.sequences()));
    const auto launch = [&](auto kernel) {
      allow_shared(kernel, kShared<D>);
      kernel<<<grid, kTileThreads, kShared<D>, stream>>>(p, pointer<bf16>(q), pointer<bf16>(rows), pointer<int32_t>(selected));
      check_launch();
    };
    if (means)
      launch(approximate_kernel<D>);
    else if (p.chunk == 16)
      launch(exact_kernel<D, 2>);
    else if (p.chunk == 32)
      launch(exact_kernel<D, 4>);
    else
      launch(exact_kernel<D, 8>);
  });
}

}  // namespace saccade::cuda
