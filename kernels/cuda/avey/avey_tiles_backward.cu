// Gradients of Y = W Z, W = A * cos, in tiles; only tiles on or below the diagonal, recomputed from Z:
//   d_W = d_Y Zᵀ     d_A = Σ_contexts d_W * cos     M_tj = d_W A / (|z_t| |z_j|)
//   d_z = Wᵀ d_Y + (M + Mᵀ) Z − diag(along / (|z|² + eps)) z,   along_t = Σ_j (e_tj + e_jt), e = d_W * W
#include "kernels/cuda/avey/avey_one_tile.cuh"
#include "kernels/cuda/device/activation.cuh"
#include "kernels/cuda/device/hopper.h"
#include "kernels/cuda/device/values.cuh"
#include "kernels/ops/avey/contextualizer_cuda.h"

namespace saccade::cuda {
namespace {

using namespace tiles;

constexpr uint32_t kMixShared = kStages * 2 * kPart;

/// c += Wᵀ d_Y + Mᵀ Z + M Z for positions j0 … j0 + 127 of one context and a tile of columns.
/// Of the positions those in [from, to) count.
__device__ __forceinline__ void add_context(Accumulator& c, const Plan& p, const Context& context, const Products& in, int64_t index,
                                            const bf16* Z, const bf16* dY, int j0, int from, int to, int column, uint32_t base) {
  const int first_query = p.first_query + context.first_query_tile(p) * p.query_tile, t0 = max(j0, first_query);
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
                                                           const Products in, bf16* dZ, bool add, Activation slope, float* columns) {
  extern __shared__ __align__(1024) char shared[];
  const Context context(p, blockIdx.z);
  const int j0 = static_cast<int>(blockIdx.y) * kTile, column = static_cast<int>(blockIdx.x) * kTile;
  const auto store_sum = [&](float sum) {
    const int at = column + static_cast<int>(threadIdx.x);
    if (threadIdx.x < kTile && at < p.r) columns[((p.first_context + blockIdx.z) * p.key_tiles() + blockIdx.y) * p.r + at] = sum;
  };
  if (j0 + kTile <= context.before) {
    if (columns) store_sum(0);
    return;
  }
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
  const int first = column + piece_column();
  int to_row[kPieces];
  Pack<bf16> of_z[kPieces];
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const int position = j0 + piece_row(i), row = position >= context.before && position < p.C && first < p.r ? context.row(position) : -1;
    to_row[i] = row;
    of_z[i] = row < 0 ? Pack<bf16>{} : load_pack(Z + int64_t{row} * p.r + first);
  }
  float of_columns[8] = {};  // a thread's pieces are all of the same columns
  each_piece(staged, c, [&](int i, const float(&values)[8]) {
    if (to_row[i] < 0) return;
    const int64_t place = int64_t{to_row[i]} * p.r + first;
    Pack<bf16> result;
    if (add) result = load_pack(dZ + place);
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      const float z = to_float(of_z[i].v[v]), value = (values[v] - pulls[piece_row(i)] * z) * slope_of_kept(slope, z);
      of_columns[v] += value;
      result.v[v] = from_float<bf16>(add ? to_float(result.v[v]) + value : value);
    }
    store_pack(dZ + place, result);
  });
  if (!columns) return;
  __syncthreads();
  float* sums = staged + static_cast<int>(threadIdx.x) / 16 * kTile + piece_column();
#pragma unroll
  for (int v = 0; v < 8; ++v) sums[v] = of_columns[v];
  __syncthreads();
  float sum = 0;
  for (int part = 0; part < kThreads / 16; ++part) sum += staged[part * kTile + static_cast<int>(threadIdx.x) % kTile];
  store_sum(sum);
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
  const int first = column + piece_column();
  each_piece(reinterpret_cast<float*>(shared), c, [&](int i, const float(&values)[8]) {
    const int row = j0 + piece_row(i);
    if (row >= rows || first >= p.r) return;
    auto* to = reinterpret_cast<float4*>(parts + (int64_t{blockIdx.y} * rows + row) * p.r + first);
    to[0] = make_float4(values[0], values[1], values[2], values[3]);
    to[1] = make_float4(values[4], values[5], values[6], values[7]);
  });
}

/// A block finishes a padding row: what the groups gathered, without the row's share in its own norm. columns [pad_rows, r], or null:
/// the same in f32, summed over the launches.
__global__ void __launch_bounds__(kThreads)
    finish_padding_kernel(const Plan p, int groups, const bf16* Z, const float* inverse, const float* parts, const Products in, bf16* dZ,
                          bool add, Activation slope, float* columns) {
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
#pragma unroll 8
    for (int g = 0; g < groups; ++g) value += parts[(int64_t{g} * rows + row) * p.r + i];
    value *= slope_of_kept(slope, z);
    to = from_float<bf16>((add ? to_float(to) : 0.0f) + value);
    if (float* of_row = columns + int64_t{row} * p.r; columns) of_row[i] = (p.first_context > 0 ? of_row[i] : 0.0f) + value;
  }
}

}  // namespace

int64_t contextualize_tiles_backward(int device, const ContextualizerShape& s, const ContextualizerScratch& scratch, const Tensor& Z,
                                     const Tensor& A, const Tensor& dY, const Tensor& dZ, bool add_z, const Tensor& dA, bool add_A,
                                     Activation slope) {
  const int64_t pad_rows = s.layout.pad_rows();
  if (s.one_tile() && hopper::available(device)) {
    const Plan p = whole_plan(s);
    int multiprocessors = 0;
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    const int groups = std::min(static_cast<int>(scratch.parts_A.dim(0)), multiprocessors);
    contextualize_one_tile_backward(device, p, groups, Z, scratch.inverse, A, dY, pointer<float>(scratch.parts_A), dZ, add_z, slope,
                                    scratch.padding, scratch.columns);
    if (dA) sum_weights(stream(device), p, groups, pointer<float>(scratch.parts_A), pointer<float>(dA), add_A);
    check_launch();
    return groups + pad_rows;
  }
  check(cudaFuncSetAttribute(rows_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMixShared));
  check(cudaFuncSetAttribute(padding_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMixShared));
  const auto *z = pointer<bf16>(Z), *dy = pointer<bf16>(dY);
  const auto* inverse = pointer<float>(scratch.inverse);
  const Products products{pointer<bf16>(scratch.weights), pointer<bf16>(scratch.slopes), pointer<float>(scratch.by_query),
                          pointer<float>(scratch.by_key), pointer<float>(scratch.parts_A)};
  const int C = static_cast<int>(s.C());
  const int pad_groups = pad_rows ? static_cast<int>(scratch.padding.dim(0)) : 0, groups = static_cast<int>(scratch.parts_A.dim(0));
  const unsigned columns = blocks_for(s.r, kTile);
  // Parts of rows, then those of the padding.
  float* columns_of_rows = pointer_or_null<float>(scratch.columns);
  const int64_t row_parts = s.contexts() * ((s.C() + kTile - 1) / kTile);
  float* columns_of_padding = columns_of_rows ? columns_of_rows + row_parts * s.r : nullptr;
  const bool runs = s.in_runs() && hopper::available(device);
  Stream queue = stream(device);
  for (int64_t first = 0; first < s.contexts(); first += s.group()) {
    const auto n = static_cast<unsigned>(std::min(s.group(), s.contexts() - first));
    const Plan p{s.layout,         first, static_cast<int>(n), C, static_cast<int>(s.r), static_cast<int>(s.first_query()), s.own_only,
                 runs ? 64 : kTile};
    const bool more = first > 0;
    if (runs)
      pairs_in_runs(device, p, groups, Z, scratch.inverse, A, dY, products);
    else
      pairs_backward(queue, p, groups, z, inverse, pointer<float>(A), dy, products);
    if (dA) sum_weights(queue, p, groups, products.parts_A, pointer<float>(dA), add_A || more);
    rows_kernel<<<dim3(columns, static_cast<unsigned>(p.key_tiles()), n), kThreads, kMixShared, queue>>>(
        p, z, inverse, dy, products, pointer<bf16>(dZ), add_z, slope, columns_of_rows);
    if (pad_rows)
      padding_kernel<<<dim3(columns, static_cast<unsigned>(pad_groups), blocks_for(pad_rows, kTile)), kThreads, kMixShared, queue>>>(
          p, pad_groups, z, dy, products, pointer<float>(scratch.padding));
    if (pad_rows)
      finish_padding_kernel<<<static_cast<unsigned>(pad_rows), kThreads, 0, queue>>>(
          p, pad_groups, z, inverse, pointer<float>(scratch.padding), products, pointer<bf16>(dZ), add_z || more, slope,
          columns_of_padding);
  }
  check_launch();
  return row_parts + pad_rows;
}

}  // namespace saccade::cuda
