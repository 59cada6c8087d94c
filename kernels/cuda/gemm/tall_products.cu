#include "kernels/ops/linear/tall_products_cuda.h"

#include "kernels/cuda/gemm/ping_pong.cuh"

namespace saccade::cuda {
namespace tall {

using ping_pong::kTile;

static_assert(kElements == kTile * kTile);

struct Result {
  int first_tile, across, down, m, n, rows;
  int first_sum;  ///< where parts of the sums of a's rows go; −1: they are not wanted
};
/// A unit of work: 128 x 128 of a result, summed over a part of the rows.
struct Sum {
  static constexpr int kStages = 6;
  static constexpr uint32_t kOwn = 0;
  static constexpr bool kTransposedB = true, kTransposesA = true;

  CUtensorMap a[kMostTallProducts], b[kMostTallProducts];
  Result results[kMostTallProducts];
  int count, tiles, splits;
  float *parts, *sums;  ///< [splits, tiles, 128, 128]; for each product that has them [splits, across, 2, down, 128]

  struct Unit {
    int index, product, m, n, begin, end;
    bool valid;
  };
  __device__ Unit first(int index) const {
    Unit u{};
    u.index = index;
    if (index >= tiles * splits) return u;
    u.valid = true;
    const int tile = index % tiles, split = index / tiles;  // units side by side read the same rows
    while (u.product + 1 < count && tile >= results[u.product + 1].first_tile) ++u.product;
    const Result& to = results[u.product];
    u.m = (tile - to.first_tile) / to.across * kTile, u.n = (tile - to.first_tile) % to.across * kTile;
    const int blocks = (to.rows + 63) / 64;
    u.begin = static_cast<int>(int64_t{blocks} * split / splits), u.end = static_cast<int>(int64_t{blocks} * (split + 1) / splits);
    return u;
  }
  __device__ Unit next(const Unit& u) const { return first(u.index + 2 * static_cast<int>(gridDim.x)); }

  /// A part without rows reads behind the last one: zeros.
  __device__ int steps(const Unit& u) const { return max(u.end - u.begin, 1); }
  __device__ int transposed_steps(const Unit& u) const { return steps(u); }
  template <class Step>
  __device__ void bring(const Unit& u, Step&& step) const {
    const int from = u.end > u.begin ? u.begin * 64 : results[u.product].rows;
    for (int s = 0; s < steps(u); ++s)
      step([&](const ping_pong::Stage& stage) {
        for (int block = 0; block < 2; ++block) {
          stage.left(block, a[u.product], u.m + 64 * block, from + 64 * s);
          stage.right(block, b[u.product], u.n + 64 * block, from + 64 * s);
        }
      });
  }

  /// Sums of a pair of columns of a over every second row. Tiles side by side alternate at the steps.
  struct RowSums {
    float2 sum;
    int across, wait;
  };
  __device__ RowSums ask(const Unit& u) const {
    const Result& to = results[u.product];
    return {{}, to.across, to.first_sum < 0 ? INT_MAX : u.n / kTile};
  }
  __device__ void watch(const Unit&, uint32_t a, RowSums& rows_of_a) const {
    if (rows_of_a.wait-- > 0) return;
    rows_of_a.wait = rows_of_a.across - 1;
    float2& sum = rows_of_a.sum;
    const int thread = static_cast<int>(threadIdx.x) % 128, pair = thread % 64;
    const SharedRows<64> rows{a + static_cast<uint32_t>(pair / 32) * ping_pong::kBlock};
#pragma unroll 8
    for (int row = thread / 64; row < 64; row += 2) {
      uint32_t two;
      asm volatile("ld.shared.b32 %0, [%1];" : "=r"(two) : "r"(rows.at(row, pair % 32 / 4) + static_cast<uint32_t>(pair % 4) * 4));
      sum.x += __uint_as_float(two << 16), sum.y += __uint_as_float(two & 0xffff0000u);
    }
  }
  __device__ void finish(const Unit& u, const Unit&, ping_pong::Sums& d, const RowSums& rows_of_a, char*) const {
    if (const Result& of = results[u.product]; of.first_sum >= 0) {
      const int thread = static_cast<int>(threadIdx.x) % 128;
      const int part = (u.index / tiles * of.across + u.n / kTile) * 2 + thread / 64;
      *reinterpret_cast<float2*>(sums + of.first_sum + (part * of.down + u.m / kTile) * kTile + thread % 64 * 2) = rows_of_a.sum;
    }
    float* to = parts + int64_t{u.index} * kElements;
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int line = 0; line < 2; ++line) {
        const int row = 64 * half + static_cast<int>(threadIdx.x) % 128 / 32 * 16 + 8 * line + static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll
        for (int n = 0; n < 16; ++n)
          *reinterpret_cast<float2*>(to + row * kTile + ping_pong::pair_column(n)) =
              make_float2(d[half][4 * n + 2 * line], d[half][4 * n + 2 * line + 1]);
      }
  }
};

constexpr int kThreads = 256;

struct ColumnSum {
  const float* parts;
  float* to;
  int stride, count, columns, first_block;
  bool add;
};
struct Goals {
  Result results[kMostTallProducts];
  float* to[kMostTallProducts];
  int64_t stride[kMostTallProducts];
  bool add[kMostTallProducts];
  ColumnSum sums[kMostTallProducts + kMostTallSums];
  int count, tiles, sum_count, sum_blocks;
};
constexpr int kSumColumns = 8, kSumThreads = kThreads / kSumColumns;
/// A block owns eight columns: of 32 threads for each, every one adds every 32nd part, then one their sums, in order.
__device__ void add_columns(const Goals& goals, int block) {
  __shared__ float of_threads[kThreads];
  if (block >= goals.sum_blocks) return;
  int i = 0;
  while (i + 1 < goals.sum_count && block >= goals.sums[i + 1].first_block) ++i;
  const ColumnSum& job = goals.sums[i];
  const int column = (block - job.first_block) * kSumColumns + static_cast<int>(threadIdx.x) % kSumColumns;
  float sum = 0;
  if (column < job.columns)
#pragma unroll 8
    for (int p = static_cast<int>(threadIdx.x) / kSumColumns; p < job.count; p += kSumThreads)
      sum += job.parts[int64_t{p} * job.stride + column];
  of_threads[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= kSumColumns || column >= job.columns) return;
  sum = job.add ? job.to[column] : 0.0f;
#pragma unroll
  for (int t = 0; t < kSumThreads; ++t) sum += of_threads[t * kSumColumns + static_cast<int>(threadIdx.x)];
  job.to[column] = sum;
}
/// Block (eight rows of a tile, tile): a thread adds the parts of four neighbours, in order. Behind the tiles: sums of columns.
__global__ void __launch_bounds__(kThreads) add_kernel(const __grid_constant__ Goals goals, const float* parts, int splits) {
  const int tile = static_cast<int>(blockIdx.y), tiles = goals.tiles;
  if (tile >= tiles) return add_columns(goals, (tile - tiles) * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x));
  const int row = static_cast<int>(blockIdx.x) * 8 + static_cast<int>(threadIdx.x) / 32, column = static_cast<int>(threadIdx.x) % 32 * 4;
  int product = 0;
  while (product + 1 < goals.count && tile >= goals.results[product + 1].first_tile) ++product;
  const Result& result = goals.results[product];
  const int m = (tile - result.first_tile) / result.across * kTile + row, n = (tile - result.first_tile) % result.across * kTile + column;
  if (m >= result.m || n >= result.n) return;
  const auto* from = reinterpret_cast<const float4*>(parts + int64_t{tile} * kElements + row * kTile + column);
  auto* to = reinterpret_cast<float4*>(goals.to[product] + m * goals.stride[product] + n);
  float4 sum = goals.add[product] ? *to : float4{};
#pragma unroll 16
  for (int s = 0; s < splits; ++s) {
    const float4 part = from[int64_t{s} * tiles * (kElements / 4)];
    sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
  }
  *to = sum;
}

}  // namespace tall

bool tall_products(int device, std::span<const TallProduct> products, std::span<const TallSum> sums, const Tensor& scratch) {
  if (!scratch || products.size() > kMostTallProducts || sums.size() > kMostTallSums || !hopper::available(device)) return false;
  const auto tiles = [](int64_t n) { return static_cast<int>((n + ping_pong::kTile - 1) / ping_pong::kTile); };
  tall::Sum work{};
  tall::Goals goals{};
  for (const TallProduct& p : products) {
    const int64_t m = p.a.dim(1), n = p.b.dim(1);
    if (p.a.dtype() != DType::bf16 || m % 8 != 0 || n % 8 != 0 || p.to.row_stride % 4 != 0 || p.to.dtype != DType::f32) return false;
    work.tiles += tiles(m) * tiles(n);
  }
  if (work.tiles > tall::kUnits) return false;
  work.splits = tall::kUnits / work.tiles;
  work.parts = pointer<float>(scratch), work.sums = work.parts + int64_t{tall::kUnits} * tall::kElements;
  const auto add_sum = [&](const float* parts, int64_t stride, int64_t count, const GradTarget& to) {
    const auto columns = static_cast<int>(to.tensor.size());
    goals.sums[goals.sum_count++] = {
        parts, pointer<float>(to.tensor), static_cast<int>(stride), static_cast<int>(count), columns, goals.sum_blocks, to.add};
    goals.sum_blocks += (columns + tall::kSumColumns - 1) / tall::kSumColumns;
  };
  int first_tile = 0, first_sum = 0;
  for (const TallProduct& p : products) {
    const int64_t m = p.a.dim(1), n = p.b.dim(1), rows = p.a.dim(0);
    const auto i = static_cast<size_t>(work.count++);
    const int across = tiles(n), down = tiles(m), row_sums = p.sums ? work.splits * across * 2 * down * ping_pong::kTile : 0;
    work.results[i] = {first_tile, across, down, static_cast<int>(m), static_cast<int>(n), static_cast<int>(rows), p.sums ? first_sum : -1};
    work.a[i] = fused::tensor_map(matrix(p.a, m), rows, m, 64), work.b[i] = fused::tensor_map(matrix(p.b, n), rows, n, 64);
    goals.results[i] = work.results[i];
    goals.to[i] = static_cast<float*>(const_cast<void*>(p.to.data)), goals.stride[i] = p.to.row_stride, goals.add[i] = p.add;
    if (p.sums) add_sum(work.sums + first_sum, int64_t{down} * ping_pong::kTile, int64_t{work.splits} * across * 2, p.sums);
    first_tile += across * down, first_sum += row_sums;
  }
  for (const TallSum& sum : sums) add_sum(pointer<float>(sum.parts), sum.to.tensor.size(), sum.parts.size() / sum.to.tensor.size(), sum.to);
  goals.count = work.count, goals.tiles = work.tiles;
  ping_pong::launch(device, work);
  constexpr unsigned kAcross = ping_pong::kTile / 8;
  tall::add_kernel<<<dim3(kAcross, static_cast<unsigned>(work.tiles) + blocks_for(goals.sum_blocks, kAcross)), tall::kThreads, 0,
                     stream(device)>>>(goals, work.parts, work.splits);
  check_launch();
  return true;
}

}  // namespace saccade::cuda
