// Gradients of Y = W Z, W = A * cos, in tiles; only tiles on or below the diagonal, recomputed from Z:
//   d_W = d_Y Zᵀ     d_A = Σ_contexts d_W * cos     M_tj = d_W A / (|z_t| |z_j|)
//   d_z = Wᵀ d_Y + (M + Mᵀ) Z − diag(along / (|z|² + eps)) z,   along_t = Σ_j (e_tj + e_jt), e = d_W * W
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/avey_contextualizer.h"
#include "kernels/cuda/avey_tiles.cuh"

namespace saccade::cuda {
namespace {

using namespace tiles;

constexpr uint32_t kMixShared = kStages * 2 * kPart;

/// along of a position: what its query and its key gathered.
__device__ float along(const Plan& p, const Context& context, const Products& in, int64_t index, int position) {
  const int first = context.first_query_tile(p), key = position / kTile;
  float sum = 0;
  if (position >= p.first_query && (position - p.first_query) / kTile >= first && (position >= context.before || context.shows_padding))
    for (int k = 0; k < p.keys_of((position - p.first_query) / kTile); ++k)
      sum += in.by_query[(index * p.key_tiles() + k) * p.C + position];
  for (int q = first; q < p.query_tiles(); ++q)
    if (key < p.keys_of(q)) sum += in.by_key[(index * p.query_tiles() + q) * p.C + position];
  return sum;
}

/// c += Wᵀ d_Y + Mᵀ Z + M Z for positions j0 … j0 + 127 of one context and a tile of columns.
/// Of the positions those in [from, to) count.
__device__ __forceinline__ void add_context(Accumulator& c, const Plan& p, const Context& context, const Products& in, int64_t index,
                                            const bf16* Z, const bf16* dY, int j0, int from, int to, int column, uint32_t base) {
  const int first_query = p.first_query + context.first_query_tile(p) * kTile, t0 = max(j0, first_query);
  const int by_key = max(0, (p.C - t0 + kDepth - 1) / kDepth), first_key = context.padding ? 0 : context.before / kDepth * kDepth;
  const int last_key = min(j0 + kTile, p.C);
  const bool asks = j0 + kTile > first_query && (context.shows_padding || to > context.before);
  const int by_query = asks ? (last_key - first_key + kDepth - 1) / kDepth : 0;
  const bf16 *W = in.W + index * p.queries() * p.C, *M = in.M + index * p.queries() * p.C;
  each_step(
      2 * by_key + by_query,
      [&](int step, int stage) {
        const uint32_t at = base + static_cast<uint32_t>(stage) * 2 * kPart;
        if (step < 2 * by_key) {
          const bool first = step < by_key;
          const int t = t0 + (first ? step : step - by_key) * kDepth;
          const bf16* weights = (first ? W : M) + int64_t{t - p.first_query} * p.C;
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int row = static_cast<int>(threadIdx.x) / 16 + 16 * i, piece = static_cast<int>(threadIdx.x) % 16, j = j0 + piece * 8;
            const bool valid = t + row < p.C && j >= from && j < to;
            copy_async_16(SharedHalves{at}.at(row, piece), valid ? weights + int64_t{row} * p.C + j : Z, valid);
          }
          copy_columns(at + kPart, Z, column, p.r, [&](int row) {
            const int64_t z = t + row >= p.C ? -1 : first ? context.result(t + row) : context.row(t + row);
            return z < 0 ? nullptr : (first ? dY : Z) + z * p.r;
          });
        } else {
          const int k = first_key + (step - 2 * by_key) * kDepth;
          copy_rows(at, Z, k, last_key, [&](int row, int) {
            const int j = j0 + row;
            return j >= from && j < to && j >= first_query ? M + int64_t{j - p.first_query} * p.C : nullptr;
          });
          copy_columns(at + kPart, Z, column, p.r, [&](int row) {
            const int64_t z = k + row < last_key ? context.row(k + row) : -1;
            return z < 0 ? nullptr : Z + z * p.r;
          });
        }
      },
      [&](int step, int stage) {
        const uint32_t at = base + static_cast<uint32_t>(stage) * 2 * kPart;
        if (step < 2 * by_key)
          multiply_columns<true>(c, at, at + kPart);
        else
          multiply_columns<false>(c, at, at + kPart);
      });
}

/// Gradients of a context's own and chosen rows. Block (tile of columns, tile of positions, context).
__global__ void __launch_bounds__(kThreads, 2) rows_kernel(const Plan p, const bf16* Z, const float* inverse, const bf16* dY,
                                                           const Products in, bf16* dZ, bool add, Activation slope) {
  extern __shared__ __align__(1024) char shared[];
  const Context context(p, blockIdx.z);
  const int j0 = static_cast<int>(blockIdx.y) * kTile, column = static_cast<int>(blockIdx.x) * kTile;
  if (j0 + kTile <= context.before) return;
  Accumulator c;
  clear(c);
  add_context(c, p, context, in, blockIdx.z, Z, dY, j0, max(j0, context.before), min(j0 + kTile, p.C), column, shared_address(shared));
  auto* staged = reinterpret_cast<float*>(shared);
  float* pulls = staged + kTile * kStagedRow;
  if (threadIdx.x < kTile) {
    const int position = j0 + static_cast<int>(threadIdx.x);
    const int64_t row = position >= context.before && position < p.C ? context.row(position) : -1;
    pulls[threadIdx.x] = row < 0 ? 0.0f : along(p, context, in, blockIdx.z, position) * inverse[row] * inverse[row];
  }
  each_piece(staged, c, [&](int at, int piece, const float(&values)[8]) {
    const int position = j0 + at;
    const int64_t row = position >= context.before && position < p.C ? context.row(position) : -1;
    if (row < 0 || column + piece >= p.r) return;
    const int64_t to = row * p.r + column + piece;
    const Pack<bf16> z = load_pack(Z + to);
    Pack<bf16> result;
    if (add) result = load_pack(dZ + to);
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      const float value = (values[v] - pulls[at] * to_float(z.v[v])) * slope_of_kept(slope, to_float(z.v[v]));
      result.v[v] = from_float<bf16>(add ? to_float(result.v[v]) + value : value);
    }
    store_pack(dZ + to, result);
  });
}

/// Gradients of the padding's rows, summed over a group of contexts. Block (tile of columns, group, tile of positions: the first ones
/// have most to do); parts [groups, pad_rows, r].
__global__ void __launch_bounds__(kThreads, 2)
    padding_kernel(const Plan p, int groups, const bf16* Z, const bf16* dY, const Products in, float* parts) {
  extern __shared__ __align__(1024) char shared[];
  const int j0 = static_cast<int>(blockIdx.z) * kTile, column = static_cast<int>(blockIdx.x) * kTile;
  const int begin = static_cast<int>(int64_t{p.contexts} * blockIdx.y / groups);
  const int end = static_cast<int>(int64_t{p.contexts} * (blockIdx.y + 1) / groups);
  Accumulator c;
  clear(c);
  for (int index = begin; index < end; ++index) {
    const Context context(p, index);
    if (context.before <= j0) continue;
    add_context(c, p, context, in, index, Z, dY, j0, j0, min(j0 + kTile, context.before), column, shared_address(shared));
  }
  const int rows = static_cast<int>(p.layout.pad_rows());
  each_piece(reinterpret_cast<float*>(shared), c, [&](int at, int piece, const float(&values)[8]) {
    if (j0 + at >= rows || column + piece >= p.r) return;
    auto* to = reinterpret_cast<float4*>(parts + (int64_t{blockIdx.y} * rows + j0 + at) * p.r + column + piece);
    to[0] = make_float4(values[0], values[1], values[2], values[3]);
    to[1] = make_float4(values[4], values[5], values[6], values[7]);
  });
}

/// A block finishes a padding row: what the groups gathered, without the row's share in its own norm.
__global__ void __launch_bounds__(kThreads)
    finish_padding_kernel(const Plan p, int groups, const bf16* Z, const float* inverse, const float* parts, const Products in, bf16* dZ,
                          bool add, Activation slope) {
  const int row = static_cast<int>(blockIdx.x), rows = static_cast<int>(gridDim.x);
  float sum = 0;
  for (int index = static_cast<int>(threadIdx.x); index < p.contexts; index += kThreads) {
    const Context context(p, index);
    if (row < context.before) sum += along(p, context, in, index, row);
  }
  const float pull = block_sum<kThreads>(sum) * inverse[row] * inverse[row];
  for (int i = static_cast<int>(threadIdx.x); i < p.r; i += kThreads) {
    bf16& to = dZ[int64_t{row} * p.r + i];
    const float z = to_float(Z[int64_t{row} * p.r + i]);
    float value = -pull * z;
    for (int g = 0; g < groups; ++g) value += parts[(int64_t{g} * rows + row) * p.r + i];
    to = from_float<bf16>((add ? to_float(to) : 0.0f) + value * slope_of_kept(slope, z));
  }
}

}  // namespace

void contextualize_tiles_backward(Stream stream, const ContextualizerShape& s, const ContextualizerScratch& scratch, const Tensor& Z,
                                  const Tensor& A, const Tensor& dY, const Tensor& dZ, bool add_z, const Tensor& dA, bool add_A,
                                  Activation slope) {
  check(cudaFuncSetAttribute(rows_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMixShared));
  check(cudaFuncSetAttribute(padding_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMixShared));
  const auto *z = pointer<bf16>(Z), *dy = pointer<bf16>(dY);
  const auto* inverse = pointer<float>(scratch.inverse);
  const Products products{pointer<bf16>(scratch.weights), pointer<bf16>(scratch.slopes), pointer<float>(scratch.by_query),
                          pointer<float>(scratch.by_key), pointer<float>(scratch.parts_A)};
  const int pad_rows = static_cast<int>(s.layout.pad_rows()), C = static_cast<int>(s.C());
  for (int64_t first = 0; first < s.contexts(); first += s.group()) {
    const auto n = static_cast<unsigned>(std::min(s.group(), s.contexts() - first));
    const Plan p{s.layout, first, static_cast<int>(n), C, static_cast<int>(s.r), static_cast<int>(s.first_query()), s.own_only};
    const bool more = first > 0;
    const auto groups = static_cast<int>(scratch.parts_A.dim(0));
    pairs_backward(stream, p, groups, z, inverse, pointer<float>(A), dy, products);
    if (dA) sum_weights(stream, p, groups, products.parts_A, pointer<float>(dA), add_A || more);
    const unsigned columns = blocks_for(s.r, kTile);
    rows_kernel<<<dim3(columns, static_cast<unsigned>(p.key_tiles()), n), kThreads, kMixShared, stream>>>(p, z, inverse, dy, products,
                                                                                                          pointer<bf16>(dZ), add_z, slope);
    if (pad_rows == 0) continue;
    const auto pad_groups = static_cast<int>(scratch.padding.dim(0));
    padding_kernel<<<dim3(columns, static_cast<unsigned>(pad_groups), blocks_for(pad_rows, kTile)), kThreads, kMixShared, stream>>>(
        p, pad_groups, z, dy, products, pointer<float>(scratch.padding));
    finish_padding_kernel<<<static_cast<unsigned>(pad_rows), kThreads, 0, stream>>>(
        p, pad_groups, z, inverse, pointer<float>(scratch.padding), products, pointer<bf16>(dZ), add_z || more, slope);
  }
  check_launch();
}

}  // namespace saccade::cuda
