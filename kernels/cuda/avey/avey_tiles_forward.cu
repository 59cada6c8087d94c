// Y = (tril(A) * Cos(Z)) Z in tiles: W = tril(A) * Cos(Z) in bf16, then W Z; only tiles on or below the diagonal, and no queries
// that are padding of another context.
#include "kernels/cuda/avey/avey_one_tile.cuh"
#include "kernels/cuda/device/hopper.h"
#include "kernels/cuda/device/values.cuh"
#include "kernels/ops/avey/context_weights.h"
#include "kernels/ops/avey/contextualizer_cuda.h"

namespace saccade::cuda {
namespace {

using namespace tiles;

constexpr uint32_t kShared = kStages * 2 * kPart;

/// inverse[row] = 1 / sqrt(|z|² + 1e-8), a warp per row.
__global__ void __launch_bounds__(kThreads) inverse_norms_kernel(const bf16* z, float* inverse, int64_t rows, int r) {
  const int64_t row = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  float sum = 0;
  for (int i = threadIdx.x % 32 * 8; i < r; i += 256) {
    const Pack<bf16> pack = load_pack(z + row * r + i);
#pragma unroll
    for (int v = 0; v < 8; ++v) sum += to_float(pack.v[v]) * to_float(pack.v[v]);
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) inverse[row] = rsqrtf(sum + static_cast<float>(avey::kCosineEps));
}

__global__ void __launch_bounds__(kThreads) inverse_of_squares_kernel(const float* squares, float* inverse, int64_t rows, int tiles) {
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile) sum += squares[tile * rows + row];
  inverse[row] = rsqrtf(sum + static_cast<float>(avey::kCosineEps));
}

/// Block (pair of tiles, context).
__global__ void __launch_bounds__(kThreads, 2) weights_kernel(const Plan p, const bf16* Z, const float* inverse, const float* A, bf16* W) {
  extern __shared__ __align__(1024) char shared[];
  const Context context(p, blockIdx.y);
  const int2 pair = pair_of(p, static_cast<int>(blockIdx.x));
  if (pair.x < context.first_query_tile(p)) return;
  const int q0 = p.first_query + pair.x * kTile, k0 = pair.y * kTile;
  const uint32_t base = shared_address(shared);
  const bf16 *queries[4], *keys[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = static_cast<int>(threadIdx.x) / 8 + 32 * i;
    const int64_t q = q0 + row < p.C ? context.row(q0 + row) : -1, k = k0 + row < p.C ? context.row(k0 + row) : -1;
    queries[i] = q < 0 ? nullptr : Z + q * p.r;
    keys[i] = k < 0 ? nullptr : Z + k * p.r;
  }
  Accumulator c;
  clear(c);
  each_step((p.r + kDepth - 1) / kDepth,
            [&](int step, int stage) {
              const uint32_t at = base + static_cast<uint32_t>(stage) * 2 * kPart;
              copy_rows(at, Z, step * kDepth, p.r, [&](int, int i) { return queries[i]; });
              copy_rows(at + kPart, Z, step * kDepth, p.r, [&](int, int i) { return keys[i]; });
            },
            [&](int, int stage) {
              const uint32_t at = base + static_cast<uint32_t>(stage) * 2 * kPart;
              multiply_rows<false>(c, c, at, at, at + kPart);
            });
  auto* inverses = reinterpret_cast<float*>(shared);  // of queries, then of keys
  {
    const int row = static_cast<int>(threadIdx.x) % kTile, position = (threadIdx.x < kTile ? q0 : k0) + row;
    const int64_t at = position < p.C ? context.row(position) : -1;
    inverses[threadIdx.x] = at < 0 ? 0.0f : inverse[at];
  }
  __syncthreads();
#pragma unroll
  for (int line = 0; line < kLines; ++line) {
    const int row = tile_row(line), t = q0 + row;
    const float* of_t = A + int64_t{min(t, p.C - 1)} * p.C;
#pragma unroll
    for (int n = 0; n < kPairs; n += 4) {
      uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = tile_column(n + i), j = k0 + column, e = element(line, n + i);
        const float2 a = *reinterpret_cast<const float2*>(of_t + min(j, p.C - 2));
        const float w0 = j <= t ? a.x * c[e] * (inverses[row] * inverses[kTile + column]) : 0.0f;
        const float w1 = j + 1 <= t ? a.y * c[e + 1] * (inverses[row] * inverses[kTile + column + 1]) : 0.0f;
        words[i] = pack_bf16(w0, w1);
      }
      store_piece(W + (int64_t{blockIdx.y} * p.queries() + t - p.first_query) * p.C, k0, n, t < p.C, p.C, words);
    }
  }
}

/// Block (tile of columns, tile of queries from the last on, context).
__global__ void __launch_bounds__(kThreads, 2)
    mix_kernel(const Plan p, const bf16* Z, const bf16* W, bf16* Y, const bf16* gate, bf16* gated) {
  extern __shared__ __align__(1024) char shared[];
  const Context context(p, blockIdx.z);
  const int tile = p.query_tiles() - 1 - static_cast<int>(blockIdx.y), q0 = p.first_query + tile * kTile;
  if (tile < context.first_query_tile(p)) return;
  const int column = static_cast<int>(blockIdx.x) * kTile;
  const int last = min(q0 + kTile, p.C), first = context.padding ? 0 : context.before / kDepth * kDepth;
  const uint32_t base = shared_address(shared);
  const bf16* weights = W + (int64_t{blockIdx.z} * p.queries() + tile * kTile) * p.C;
  Accumulator c;
  clear(c);
  each_step((last - first + kDepth - 1) / kDepth,
            [&](int step, int stage) {
              const uint32_t at = base + static_cast<uint32_t>(stage) * 2 * kPart;
              const int k = first + step * kDepth;
              copy_rows(at, Z, k, last, [&](int row, int) { return q0 + row < p.C ? weights + int64_t{row} * p.C : nullptr; });
              copy_columns(at + kPart, Z, column, p.r, [&](int row) {
                const int64_t z = k + row < last ? context.row(k + row) : -1;
                return z < 0 ? nullptr : Z + z * p.r;
              });
            },
            [&](int, int stage) {
              const uint32_t at = base + static_cast<uint32_t>(stage) * 2 * kPart;
              multiply_columns<false>(c, at, at + kPart);
            });
  const int at = column + piece_column();
  int to_row[kPieces];
  Pack<bf16> of_gate[kPieces];
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const int position = q0 + piece_row(i), to = position < p.C && at < p.r ? context.result(position) : -1;
    to_row[i] = to;
    of_gate[i] = gated && to >= 0 ? load_pack(gate + int64_t{to} * p.r + at) : Pack<bf16>{};
  }
  each_piece(reinterpret_cast<float*>(shared), c, [&](int i, const float(&values)[8]) {
    if (to_row[i] < 0) return;
    const int64_t place = int64_t{to_row[i]} * p.r + at;
    const uint4 words = make_uint4(pack_bf16(values[0], values[1]), pack_bf16(values[2], values[3]), pack_bf16(values[4], values[5]),
                                   pack_bf16(values[6], values[7]));
    if (Y != gated) *reinterpret_cast<uint4*>(Y + place) = words;
    if (gated) store_pack(gated + place, times(words, of_gate[i]));
  });
}

}  // namespace

void inverse_norms(Stream stream, const Tensor& Z, const Tensor& squares, const Tensor& inverse) {
  if (squares) {
    inverse_of_squares_kernel<<<blocks_for(Z.dim(0), kThreads), kThreads, 0, stream>>>(pointer<float>(squares), pointer<float>(inverse),
                                                                                       Z.dim(0), static_cast<int>(squares.dim(0)));
    return check_launch();
  }
  inverse_norms_kernel<<<blocks_for(Z.dim(0), kThreads / 32), kThreads, 0, stream>>>(pointer<bf16>(Z), pointer<float>(inverse), Z.dim(0),
                                                                                     static_cast<int>(Z.dim(1)));
}

void contextualize_tiles(int device, const ContextualizerShape& s, const ContextualizerScratch& scratch, const Tensor& Z, const Tensor& A,
                         const Tensor& Y, const avey::Gate& to, const Tensor& squares) {
  if (s.one_tile() && hopper::available(device)) return contextualize_one_tile(device, whole_plan(s), Z, A, scratch.inverse, Y, to);
  check(cudaFuncSetAttribute(weights_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  check(cudaFuncSetAttribute(mix_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  Stream queue = stream(device);
  inverse_norms(queue, Z, squares, scratch.inverse);
  for (int64_t first = 0; first < s.contexts(); first += s.group()) {
    const auto n = static_cast<unsigned>(std::min(s.group(), s.contexts() - first));
    const Plan p{s.layout,  first, static_cast<int>(n), static_cast<int>(s.C()), static_cast<int>(s.r), static_cast<int>(s.first_query()),
                 s.own_only};
    weights_kernel<<<dim3(static_cast<unsigned>(p.pairs()), n), kThreads, kShared, queue>>>(
        p, pointer<bf16>(Z), pointer<float>(scratch.inverse), pointer<float>(A), pointer<bf16>(scratch.weights));
    mix_kernel<<<dim3(blocks_for(s.r, kTile), static_cast<unsigned>(p.query_tiles()), n), kThreads, kShared, queue>>>(
        p, pointer<bf16>(Z), pointer<bf16>(scratch.weights), pointer<bf16>(Y), pointer_or_null<bf16>(to.factor),
        pointer_or_null<bf16>(to.product));
  }
  check_launch();
}

}  // namespace saccade::cuda
