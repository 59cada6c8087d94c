#include "kernels/cuda/tall_products.h"

#include "kernels/cuda/turns.cuh"

namespace saccade::cuda {
namespace tall {

using turns::kTile;

static_assert(kElements == kTile * kTile);

struct Result {
  int first_tile, across, m, n, rows;
};
/// A unit of work: 128 x 128 of a result, summed over a part of the rows.
struct Sum {
  static constexpr int kStages = 6;
  static constexpr uint32_t kOwn = 0;
  static constexpr bool kTurnedB = true, kTurnsA = true;

  CUtensorMap a[kMostTallProducts], b[kMostTallProducts];
  Result results[kMostTallProducts];
  int count, tiles, splits;
  float* parts;  ///< [splits, tiles, 128, 128]

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
  __device__ int turned_steps(const Unit& u) const { return steps(u); }
  template <class Step>
  __device__ void bring(const Unit& u, Step&& step) const {
    const int from = u.end > u.begin ? u.begin * 64 : results[u.product].rows;
    for (int s = 0; s < steps(u); ++s)
      step([&](const turns::Stage& stage) {
        for (int block = 0; block < 2; ++block) {
          stage.left(block, a[u.product], u.m + 64 * block, from + 64 * s);
          stage.right(block, b[u.product], u.n + 64 * block, from + 64 * s);
        }
      });
  }

  struct Nothing {};
  __device__ Nothing ask(const Unit&) const { return {}; }
  __device__ void finish(const Unit& u, const Unit&, turns::Sums& d, Nothing, char*) const {
    float* to = parts + int64_t{u.index} * kElements;
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int line = 0; line < 2; ++line) {
        const int row = 64 * half + static_cast<int>(threadIdx.x) % 128 / 32 * 16 + 8 * line + static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll
        for (int n = 0; n < 16; ++n)
          *reinterpret_cast<float2*>(to + row * kTile + turns::pair_column(n)) =
              make_float2(d[half][4 * n + 2 * line], d[half][4 * n + 2 * line + 1]);
      }
  }
};

constexpr int kThreads = 256;

struct Goals {
  Result results[kMostTallProducts];
  float* to[kMostTallProducts];
  int64_t stride[kMostTallProducts];
  bool add[kMostTallProducts];
  int count;
};
/// Block (eight rows of a tile, tile): a thread adds the parts of four neighbours, in order.
__global__ void __launch_bounds__(kThreads) add_kernel(const Goals goals, const float* parts, int splits) {
  const int tile = static_cast<int>(blockIdx.y), tiles = static_cast<int>(gridDim.y);
  const int row = static_cast<int>(blockIdx.x) * 8 + static_cast<int>(threadIdx.x) / 32, column = static_cast<int>(threadIdx.x) % 32 * 4;
  int product = 0;
  while (product + 1 < goals.count && tile >= goals.results[product + 1].first_tile) ++product;
  const Result& result = goals.results[product];
  const int m = (tile - result.first_tile) / result.across * kTile + row, n = (tile - result.first_tile) % result.across * kTile + column;
  if (m >= result.m || n >= result.n) return;
  const auto* from = reinterpret_cast<const float4*>(parts + int64_t{tile} * kElements + row * kTile + column);
  auto* to = reinterpret_cast<float4*>(goals.to[product] + m * goals.stride[product] + n);
  float4 sum = goals.add[product] ? *to : float4{};
#pragma unroll 8
  for (int s = 0; s < splits; ++s) {
    const float4 part = from[int64_t{s} * tiles * (kElements / 4)];
    sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
  }
  *to = sum;
}

}  // namespace tall

bool tall_products(int device, std::span<const TallProduct> products, const Tensor& scratch) {
  if (!scratch || products.size() > kMostTallProducts || !hopper::available(device)) return false;
  tall::Sum work{};
  tall::Goals goals{};
  for (const TallProduct& p : products) {
    const int64_t m = p.a.dim(1), n = p.b.dim(1);
    if (p.a.dtype() != DType::bf16 || m % 8 != 0 || n % 8 != 0 || p.to.row_stride % 4 != 0 || p.to.dtype != DType::f32) return false;
    const auto i = static_cast<size_t>(work.count++);
    const int across = static_cast<int>((n + turns::kTile - 1) / turns::kTile);
    goals.results[i] = work.results[i] = {work.tiles, across, static_cast<int>(m), static_cast<int>(n), static_cast<int>(p.a.dim(0))};
    goals.to[i] = static_cast<float*>(const_cast<void*>(p.to.data)), goals.stride[i] = p.to.row_stride, goals.add[i] = p.add;
    work.a[i] = fused::tensor_map(matrix(p.a, m), p.a.dim(0), m, 64), work.b[i] = fused::tensor_map(matrix(p.b, n), p.b.dim(0), n, 64);
    work.tiles += across * static_cast<int>((m + turns::kTile - 1) / turns::kTile);
  }
  if (work.tiles > tall::kUnits) return false;
  goals.count = work.count, work.splits = tall::kUnits / work.tiles, work.parts = pointer<float>(scratch);
  turns::launch(device, work);
  tall::add_kernel<<<dim3(turns::kTile / 8, static_cast<unsigned>(work.tiles)), tall::kThreads, 0, stream(device)>>>(goals, work.parts,
                                                                                                                     work.splits);
  check_launch();
  return true;
}

}  // namespace saccade::cuda
