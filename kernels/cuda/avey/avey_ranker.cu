#include "kernels/cuda/avey/avey_choice.cuh"
#include "kernels/cuda/avey/avey_layout.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/ops/avey/ranker_cuda.h"
#include "kernels/ops/linear/gemm_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kWarps = 4, kThreads = 32 * kWarps;

template <class T>
__global__ void __launch_bounds__(kThreads) norms_kernel(const T* x, float* norm, int64_t rows, int D) {
  const int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (row >= rows) return;
  float sum = 0;
  for (int d = threadIdx.x % 32; d < D; d += 32) {
    const float v = to_float(x[row * D + d]);
    sum += v * v;
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) norm[row] = sqrtf(sum);
}

__global__ void nothing_ranked_kernel(float* maxsim, int64_t scores, int32_t* chosen, float* weights, int64_t slots) {
  const int64_t i = int64_t{blockIdx.x} * 256 + threadIdx.x;
  if (i < scores) maxsim[i] = -INFINITY;
  if (i < slots) chosen[i] = -1, weights[i] = 0;
}

/// A block of products: rows are the tokens of splits first_query …, columns all tokens up to the last row.
struct Products {
  const float* at;
  int64_t first_query, rows, columns;
  __device__ const float* row(int64_t b, int64_t token, int64_t S) const { return at + (b * rows + token - first_query * S) * columns; }
};

/// The key of split p nearest to a query token, by one warp: value · |query| and place in the split. NaN chooses the first.
__device__ Best nearest(const float* products, const float* norm_of_keys, int64_t S, int lane) {
  Best best{-INFINITY, static_cast<int>(S)};
  for (int j = lane; j < S; j += 32) best = better(best, {products[j] * inverse(norm_of_keys[j]), j});
  best = warp_best(best);
  return {best.value, best.index < S ? best.index : 0};
}

/// Block (p, place of the split in the block, b): maxsim(i, p).
__global__ void __launch_bounds__(kThreads) scores_kernel(RankShape z, Products products, const float* norm, float* maxsim) {
  __shared__ float parts[kWarps];
  const int64_t p = blockIdx.x, b = blockIdx.z, q = products.first_query + blockIdx.y, i = z.causal ? q + 1 : q;
  if (i >= z.N || p >= i) return;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float sum = 0;
  for (int64_t a = warp; a < z.count(q); a += kWarps) {
    const int64_t token = q * z.S + a;
    const Best best = nearest(products.row(b, token, z.S) + p * z.S, norm + b * z.T + p * z.S, z.S, lane);
    sum += best.value * inverse(norm[b * z.T + token]);
  }
  if (lane == 0) parts[warp] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  sum = 0;
  for (float part : parts) sum += part;
  maxsim[(b * z.N + i) * z.N + p] = sum;
}

/// Block (place of the split in the block, b): the best candidates in sequence order, and their weights.
__global__ void __launch_bounds__(kThreads)
    choose_kernel(RankShape z, int64_t first_query, const float* maxsim, int32_t* all_chosen, float* all_weights) {
  const int64_t b = blockIdx.y, q = first_query + blockIdx.x, i = z.causal ? q + 1 : q;
  if (i >= z.N || i == 0) return;
  const int64_t at = b * z.N + i;
  choose<kThreads>({static_cast<int>(i), static_cast<int>(z.candidates(i)), z.weighting, z.first_reference}, maxsim + at * z.N,
                   all_chosen + at * z.k, all_weights + at * z.k);
}

/// Block (slot, place of the split in the block, b).
__global__ void __launch_bounds__(kThreads)
    winners_kernel(RankShape z, Products products, const float* norm, const int32_t* chosen, int32_t* winners) {
  const int64_t slot = blockIdx.x, b = blockIdx.z, q = products.first_query + blockIdx.y, i = z.causal ? q + 1 : q;
  if (i >= z.N || slot >= z.candidates(i)) return;
  const int64_t at = (b * z.N + i) * z.k + slot, p = chosen[at];
  const int lane = threadIdx.x % 32;
  for (int64_t a = threadIdx.x / 32; a < z.count(q); a += kWarps) {
    const Best best = nearest(products.row(b, q * z.S + a, z.S) + p * z.S, norm + b * z.T + p * z.S, z.S, lane);
    if (lane == 0) winners[at * z.S + a] = best.index;
  }
}

__global__ void score_gradient_kernel(RankShape z, const float* maxsim, const int32_t* all_chosen, const float* all_d_weights,
                                      float* all_d_scores) {
  const int64_t split = int64_t{blockIdx.x} * 64 + threadIdx.x, i = split % z.N;
  if (split >= z.B * z.N || i == 0) return;
  const float *scores = maxsim + split * z.N, *d_weights = all_d_weights + split * z.k;
  const int32_t* chosen = all_chosen + split * z.k;
  float* d_scores = all_d_scores + split * z.k;
  const int count = static_cast<int>(z.candidates(i)), r = reference_slot(scores, chosen, count, z.first_reference);
  const float reference = scores[chosen[r]] + kWeightEps;
  float d_reference = 0;
  for (int s = 0; s < count; ++s) {
    d_scores[s] = d_weights[s] / reference;
    d_reference -= d_weights[s] * scores[chosen[s]] / (reference * reference);
  }
  d_scores[r] += d_reference;
}

/// A warp owns one token: d_u as a query of its split, then as a winner for later splits in ascending order; then through
/// u = x / (n + eps):  d_x = (d_u − u (x · d_u) / n) / (n + eps).
template <int kValues, class T>
__global__ void __launch_bounds__(kThreads) token_gradient_kernel(RankShape z, const T* x, const float* norm, const int32_t* chosen,
                                                                  const int32_t* winners, const float* d_scores, T* dx, bool add) {
  extern __shared__ float gathered[];
  const int D = static_cast<int>(z.D), lane = static_cast<int>(threadIdx.x) % 32;
  float* d_u = gathered + threadIdx.x / 32 * static_cast<unsigned>(D);  // a lane owns its columns
  const int64_t row = int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= z.B * z.T) return;
  const int64_t b = row / z.T, t = row % z.T, s = t / z.S, a = t % z.S, first = b * z.N * z.k;
  const auto each = [&](auto&& use) {
    for (int d = lane * kValues; d < D; d += 32 * kValues) use(d);
  };
  each([&](int d) {
#pragma unroll
    for (int v = 0; v < kValues; ++v) d_u[d + v] = 0;
  });
  const auto take = [&](int64_t token, float scale) {
    const T* from = x + (b * z.T + token) * D;
    const float factor = scale * inverse(norm[b * z.T + token]);
    each([&](int d) {
      const Values<kValues> values = load_values<kValues>(from + d);
#pragma unroll
      for (int v = 0; v < kValues; ++v) d_u[d + v] += factor * values.v[v];
    });
  };
  const int64_t asked_for = z.causal ? s + 1 : s;
  if (asked_for > 0 && asked_for < z.N)
    for (int64_t slot = 0; slot < z.candidates(asked_for); ++slot) {
      const int64_t e = first + asked_for * z.k + slot;
      take(chosen[e] * z.S + winners[e * z.S + a], d_scores[e]);
    }
  each_entry(chosen, first + (s + 1) * z.k, first + z.N * z.k, static_cast<int32_t>(s), [&](int64_t e) {
    const int64_t q = z.query((e - first) / z.k), count = z.count(q);
    for (int64_t j = 0; j < count; j += 32) {
      unsigned hits = __ballot_sync(0xffffffffu, j + lane < count && winners[e * z.S + j + lane] == a);
      for (; hits; hits &= hits - 1) take(q * z.S + j + __ffs(static_cast<int>(hits)) - 1, d_scores[e]);
    }
  });
  float dot = 0;
  each([&](int d) {
    const Values<kValues> values = load_values<kValues>(x + row * D + d);
#pragma unroll
    for (int v = 0; v < kValues; ++v) dot += values.v[v] * d_u[d + v];
  });
  dot = warp_sum(dot);
  const float n = norm[row], scale = inverse(n), along = n > 0 ? dot / n : 0.0f;
  each([&](int d) {
    Values<kValues> values = load_values<kValues>(x + row * D + d), before{};
    if (add) before = load_values<kValues>(dx + row * D + d);
#pragma unroll
    for (int v = 0; v < kValues; ++v) values.v[v] = before.v[v] + scale * (d_u[d + v] - values.v[v] * scale * along);
    store_values(dx + row * D + d, values);
  });
}

}  // namespace

void rank(int device, const RankShape& z, const Tensor& x, const Tensor& norm, const Tensor& products, const avey::Ranked& out,
          const Tensor& winners) {
  Stream s = stream(device);
  float* maxsim = pointer<float>(out.maxsim);
  dispatch_cuda(x.dtype(), [&](auto t) {
    norms_kernel<<<blocks_for(z.B * z.T, kWarps), kThreads, 0, s>>>(pointer<decltype(t)>(x), pointer<float>(norm), z.B * z.T,
                                                                    static_cast<int>(z.D));
  });
  const int64_t scores = z.B * z.N * z.N, slots = z.B * z.N * z.k;
  nothing_ranked_kernel<<<blocks_for(std::max(scores, slots), 256), 256, 0, s>>>(maxsim, scores, pointer<int32_t>(out.chosen),
                                                                                 pointer<float>(out.weights), slots);
  const int64_t row_bytes = z.D * byte_size(x.dtype());
  for (int64_t first = 0; first < z.N; first += z.block_splits()) {
    const int64_t end = std::min(z.N, first + z.block_splits()), columns = std::min(z.T, end * z.S), rows = columns - first * z.S;
    const Matrix queries{static_cast<char*>(x.raw()) + first * z.S * row_bytes, x.dtype(), z.D, z.T * z.D};
    const Matrix keys{x.raw(), x.dtype(), z.D, z.T * z.D}, result{products.raw(), DType::f32, columns, rows * columns};
    gemm(device, false, true, rows, columns, z.D, 1, queries, keys, false, result, z.B);
    const Products block{pointer<float>(products), first, rows, columns};
    const auto splits = static_cast<unsigned>(end - first), batch = static_cast<unsigned>(z.B);
    scores_kernel<<<dim3(static_cast<unsigned>(end), splits, batch), kThreads, 0, s>>>(z, block, pointer<float>(norm), maxsim);
    choose_kernel<<<dim3(splits, batch), kThreads, 0, s>>>(z, first, maxsim, pointer<int32_t>(out.chosen), pointer<float>(out.weights));
    if (winners)
      winners_kernel<<<dim3(static_cast<unsigned>(z.k), splits, batch), kThreads, 0, s>>>(
          z, block, pointer<float>(norm), pointer<int32_t>(out.chosen), pointer<int32_t>(winners));
  }
  check_launch();
}

void rank_backward(Stream s, const RankShape& z, const Tensor& x, const Tensor& norm, const avey::Ranked& ranked, const Tensor& winners,
                   const Tensor& d_weights, const Tensor& d_scores, const Tensor& dx, bool add) {
  score_gradient_kernel<<<blocks_for(z.B * z.N, 64), 64, 0, s>>>(z, pointer<float>(ranked.maxsim), pointer<int32_t>(ranked.chosen),
                                                                 pointer<float>(d_weights), pointer<float>(d_scores));
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    in_pieces<8>(static_cast<int>(z.D), [&](auto n) {
      const int warps = gathering_warps(z.D);
      const size_t bytes = sizeof(float) * static_cast<size_t>(warps * z.D);
      token_gradient_kernel<n()><<<blocks_for(z.B * z.T, warps), static_cast<unsigned>(32 * warps), bytes, s>>>(
          z, pointer<T>(x), pointer<float>(norm), pointer<int32_t>(ranked.chosen), pointer<int32_t>(winners), pointer<float>(d_scores),
          pointer<T>(dx), add);
    });
  });
  check_launch();
}

}  // namespace saccade::cuda
