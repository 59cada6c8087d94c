// The fuser's product with its residual, and the way back through it and the gate in front of it.
#include "kernels/cuda/device/activation.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/cuda/gemm/ping_pong.cuh"
#include "kernels/engine/cuda_separate_memory.h"
#include "kernels/ops/avey/linear_cuda.h"

namespace saccade::cuda {
namespace fuser {

using ping_pong::kTile;

/// 128 rows and 128 columns of a product.
struct Unit {
  int tile, row, column;
  bool valid;
};
__device__ __forceinline__ Unit unit_of(int tile, int rows, int columns) {
  const int across = (columns + kTile - 1) / kTile;
  return {tile, tile / across * kTile, tile % across * kTile, tile < across * ((rows + kTile - 1) / kTile)};
}
/// Tile of a matrix from a row and a column on.
__device__ __forceinline__ void bring_tile_of(const CUtensorMap& map, int row, int column, const ping_pong::Stage& stage) {
  for (int block = 0; block < 2; ++block) {
    stage.left(block, map, column + 64 * block, row);
    stage.right(block, map, column + 64 * block, row + 64);
  }
}
/// y = h + [gated | head] Oᵀ + bias
struct Forward {
  static constexpr int kStages = 5, kSlots = 2;
  static constexpr uint32_t kOwn = kTile * 4;
  static constexpr bool kTransposedB = false, kTransposesA = false;

  CUtensorMap gated, head, weight, h, y;
  const float* bias;
  int rows, D, gates, heads;

  using Unit = fuser::Unit;
  __device__ Unit first(int tile) const { return unit_of(tile, rows, D); }
  __device__ Unit next(const Unit& u) const { return first(u.tile + 2 * static_cast<int>(gridDim.x)); }
  __device__ int steps(const Unit&) const { return (gates + 63) / 64 + (heads + 63) / 64; }
  template <class Step>
  __device__ void bring(const Unit& u, Step&& step) const {
    const auto term = [&](const CUtensorMap& map, int first, int width) {
      for (int k = 0; k < width; k += 64)
        step([&](const ping_pong::Stage& stage) {
          for (int block = 0; block < 2; ++block) {
            stage.left(block, map, k, u.row + 64 * block);
            stage.right(block, weight, first + k, u.column + 64 * block);
          }
        });
    };
    term(gated, 0, gates);
    term(head, gates, heads);
  }
  __device__ int tiles(const Unit&) const { return 1; }
  __device__ void bring_tile(const Unit& u, int, const ping_pong::Stage& stage) const { bring_tile_of(h, u.row, u.column, stage); }

  /// The bias of one column a thread.
  __device__ float ask(const Unit& u) const {
    const int column = u.column + static_cast<int>(threadIdx.x) % 128;
    return column < D ? bias[column] : 0.0f;
  }
  __device__ void finish(const Unit& u, const Unit&, ping_pong::Sums& d, float of_column, char* own,
                         const ping_pong::Tiles<kSlots>& tiles) const {
    auto* biases = reinterpret_cast<float*>(own);
    ping_pong::sync_group(static_cast<int>(threadIdx.x) / 128);
    biases[threadIdx.x % 128] = of_column;
    ping_pong::sync_group(static_cast<int>(threadIdx.x) / 128);
    tiles.wait(0);
#pragma unroll
    for (int n = 0; n < 16; n += 2) {
      const auto* from = reinterpret_cast<const float2*>(biases + ping_pong::pair_column(n));
      const float2 first = from[0], second = from[4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float x[8];
        tiles.load(0, half, n, x);
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const float2 pair = e < 4 ? first : second;
          x[e] += d[half][4 * n + e] + (e % 2 ? pair.y : pair.x);
        }
        tiles.store(0, half, n, x);
      }
    }
    tiles.give_back(
        1, [&](int, int block, int half, uint32_t from) { ping_pong::store_block(y, u.column + 64 * block, u.row + 64 * half, from); });
  }
};

/// d_y O with what belongs to the gate or to the head.
template <Activation kSlope, bool kSums>
struct Backward {
  static constexpr int kStages = 3, kSlots = 4, kSumParts = 4;
  static constexpr uint32_t kOwn = 0;
  static constexpr bool kTransposedB = true, kTransposesA = false;

  CUtensorMap dy, weight, Y, l, head, d_Y, d_l, d_head;
  float* sums;
  int rows, D, gates, heads;

  using Unit = fuser::Unit;
  __device__ Unit first(int tile) const { return unit_of(tile, rows, gates + heads); }
  __device__ Unit next(const Unit& u) const { return first(u.tile + 2 * static_cast<int>(gridDim.x)); }

  __device__ bool gate(const Unit& u) const { return u.column < gates; }
  __device__ int steps(const Unit&) const { return (D + 63) / 64; }
  __device__ int tiles(const Unit& u) const { return gate(u) ? 2 : 1; }
  template <class Step>
  __device__ void bring(const Unit& u, Step&& step) const {
    for (int k = 0; k < D; k += 64)
      step([&](const ping_pong::Stage& stage) {
        for (int block = 0; block < 2; ++block) {
          stage.left(block, dy, k, u.row + 64 * block);
          stage.right(block, weight, u.column + 64 * block, k);
        }
      });
  }
  __device__ void bring_tile(const Unit& u, int i, const ping_pong::Stage& stage) const {
    bring_tile_of(!gate(u) ? head : i == 0 ? Y : l, u.row, gate(u) ? u.column : u.column - gates, stage);
  }

  struct Nothing {};
  __device__ Nothing ask(const Unit&) const { return {}; }

  /// Eight of d_l or d_head; entries e % 2 of `columns` gather them.
  __device__ static void gather(const float (&x)[8], float* columns) {
    if constexpr (kSums)
#pragma unroll
      for (int e = 0; e < 8; ++e) columns[e / 4 * 2 + e % 2] += x[e];
  }

  __device__ void finish(const Unit& u, const Unit&, ping_pong::Sums& d, Nothing, char*, const ping_pong::Tiles<kSlots>& tiles) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) % 128 / 32;
    float of_columns[32] = {};  // entries 2 n + v of columns 8 n + 2 (lane % 4) + v
    /// use(half, n, eight of the product, what gathers them, fetch(half, n)), fetched one step ahead
    const auto each_eight = [&](auto&& fetch, auto&& use) {
      auto ahead = fetch(0, 0);
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const int half = i / 8, n = i % 8 * 2;
        const auto fetched = ahead;
        if (i < 15) ahead = fetch((i + 1) / 8, (i + 1) % 8 * 2);
        float x[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) x[e] = d[half][4 * n + e];
        use(half, n, x, of_columns + 2 * n, fetched);
      }
    };
    using Eight = typename ping_pong::Tiles<kSlots>::Eight;
    tiles.wait(0);
    if (gate(u)) {
      struct Pair {
        Eight y, value;
      };
      tiles.wait(1);
      each_eight(
          [&](int half, int n) {
            return Pair{tiles.load(0, half, n), tiles.load(1, half, n)};
          },
          [&](int half, int n, float(&x)[8], float* columns, const Pair& fetched) {
            float y[8], value[8], of_y[8];
            fetched.y.unpack(y), fetched.value.unpack(value);
#pragma unroll
            for (int e = 0; e < 8; ++e) of_y[e] = x[e] * value[e], x[e] *= y[e] * slope_over_value<kSlope>(value[e]);
            tiles.store(0, half, n, of_y);
            gather(x, columns);
            tiles.store(1, half, n, x);
          });
      tiles.give_back(2, [&](int i, int block, int half, uint32_t from) {
        ping_pong::store_block(i == 0 ? d_Y : d_l, u.column + 64 * block, u.row + 64 * half, from);
      });
    } else {
      each_eight([&](int half, int n) { return tiles.load(0, half, n); },
                 [&](int half, int n, float(&x)[8], float* columns, const Eight& fetched) {
                   float value[8];
                   fetched.unpack(value);
#pragma unroll
                   for (int e = 0; e < 8; ++e) x[e] *= slope_of_value<kSlope>(value[e]);
                   gather(x, columns);
                   tiles.store(0, half, n, x);
                 });
      tiles.give_back(1, [&](int, int block, int half, uint32_t from) {
        ping_pong::store_block(d_head, u.column - gates + 64 * block, u.row + 64 * half, from);
      });
    }
    if constexpr (!kSums) return;
    fused::add_halves<32>(of_columns, 16);
    fused::add_halves<16>(of_columns, 8);
    fused::add_halves<8>(of_columns, 4);
    float* to = sums + int64_t{u.row / kTile * kSumParts + warp} * (gates + heads);
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const int column = u.column + 8 * (lane / 4 * 2 + i / 2) + lane % 4 * 2;
      if (column < gates + heads) *reinterpret_cast<float2*>(to + column) = make_float2(of_columns[i], of_columns[i + 1]);
    }
  }
};
static_assert(row_sum_parts(kTile) == Backward<Activation::none, true>::kSumParts);

}  // namespace fuser

namespace {

using ping_pong::kTile;

CUtensorMap blocks_of(const Tensor& x) { return fused::tensor_map(matrix(x, x.dim(1)), x.dim(0), x.dim(1), 64); }

}  // namespace

bool fuse_product(int device, const Tensor& h, const Tensor& gated, const Tensor& head, const Tensor& weight, const Tensor& bias,
                  const Tensor& y) {
  const int64_t Q = y.dim(0), D = y.dim(1), gates = gated.dim(1), heads = head ? head.dim(1) : 0;
  if (h.dtype() != DType::bf16 || D % 8 != 0 || gates % 64 != 0 || heads % 8 != 0 || !hopper::available(device)) return false;
  count_as_written(stream(device), y);
  ping_pong::launch(device, fuser::Forward{blocks_of(gated), blocks_of(head ? head : gated), blocks_of(weight), blocks_of(h), blocks_of(y),
                                           pointer<float>(bias), static_cast<int>(Q), static_cast<int>(D), static_cast<int>(gates),
                                           static_cast<int>(heads)});
  return true;
}

bool fuse_product_backward(int device, const Tensor& dy, const Tensor& weight, const FusedParts& z, const FusedParts& d, Activation slope,
                           const Tensor& sums) {
  const int64_t Q = dy.dim(0), D = dy.dim(1), gates = z.Y.dim(1), heads = z.head ? z.head.dim(1) : 0;
  const bool whole_tiles = gates % kTile == 0 && D % 8 == 0 && heads % 8 == 0;
  if (dy.dtype() != DType::bf16 || !whole_tiles || Q * (gates + heads) > INT_MAX || !hopper::available(device)) return false;
  const auto or_l = [](const Tensor& x, const Tensor& l) { return blocks_of(x ? x : l); };
  for (const Tensor& x : {d.Y, d.l, d.head})
    if (x) count_as_written(stream(device), x);
  with_slope(slope, [&](auto f) {
    const auto launch = [&](auto with_sums) {
      ping_pong::launch(device, fuser::Backward<decltype(f)::value, decltype(with_sums)::value>{
                                    blocks_of(dy), blocks_of(weight), blocks_of(z.Y), blocks_of(z.l), or_l(z.head, z.l), blocks_of(d.Y),
                                    blocks_of(d.l), or_l(d.head, d.l), pointer_or_null<float>(sums), static_cast<int>(Q),
                                    static_cast<int>(D), static_cast<int>(gates), static_cast<int>(heads)});
    };
    if (sums)
      launch(std::true_type{});
    else
      launch(std::false_type{});
  });
  return true;
}

}  // namespace saccade::cuda
