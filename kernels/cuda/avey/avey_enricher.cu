// Z = f(x Wᵀ + bias), the parts of Z beside each other, where f needs no input kept for its slope.
#include <span>

#include "kernels/cuda/device/activation.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/cuda/gemm/ping_pong.cuh"
#include "kernels/engine/cuda_separate_memory.h"
#include "kernels/ops/avey/linear_cuda.h"

namespace saccade::cuda {
namespace enricher {

using ping_pong::kTile;

constexpr int kMostParts = 3;

/// A unit of work: 128 rows and 128 columns of Z.
template <Activation kF>
struct Forward {
  static constexpr int kStages = 5;
  static constexpr uint32_t kOwn = ping_pong::kStaged + kTile * 4;
  static constexpr bool kTransposedB = false, kTransposesA = false;

  CUtensorMap x, weight, values[kMostParts];
  int begins[kMostParts];  ///< columns of the parts, multiples of 64; INT_MAX where there is none
  const float* bias;
  int rows, columns, D;
  float* squares;  ///< of the first part, or null

  struct Unit {
    int tile, row, column;
    bool valid;
  };
  __device__ Unit first(int tile) const {
    const int across = (columns + kTile - 1) / kTile;
    return {tile, tile / across * kTile, tile % across * kTile, tile < across * ((rows + kTile - 1) / kTile)};
  }
  __device__ Unit next(const Unit& u) const { return first(u.tile + 2 * static_cast<int>(gridDim.x)); }
  __device__ int steps(const Unit&) const { return (D + 63) / 64; }
  template <class Step>
  __device__ void bring(const Unit& u, Step&& step) const {
    for (int k = 0; k < D; k += 64)
      step([&](const ping_pong::Stage& stage) {
        for (int block = 0; block < 2; ++block) {
          stage.left(block, x, k, u.row + 64 * block);
          stage.right(block, weight, k, u.column + 64 * block);
        }
      });
  }

  /// The bias of one column a thread.
  __device__ float ask(const Unit& u) const {
    const int column = u.column + static_cast<int>(threadIdx.x) % 128;
    return column < columns ? bias[column] : 0.0f;
  }
  /// Of a tile inside of the first part.
  __device__ void add_squares(const Unit& u, const ping_pong::Sums& d) const {
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int line = 0; line < 2; ++line) {
        float sum = 0;
#pragma unroll
        for (int n = 0; n < 16; ++n)
#pragma unroll
          for (int e = 4 * n + 2 * line; e < 4 * n + 2 * line + 2; ++e) sum += d[half][e] * d[half][e];
        sum = quad_sum(sum);
        const int row =
            u.row + 64 * half + static_cast<int>(threadIdx.x) % 128 / 32 * 16 + 8 * line + static_cast<int>(threadIdx.x) % 32 / 4;
        if (threadIdx.x % 4 == 0 && row < rows) squares[int64_t{u.column / kTile} * rows + row] = sum;
      }
  }
  __device__ void finish(const Unit& u, const Unit&, ping_pong::Sums& d, float of_column, char* own) const {
    auto* biases = reinterpret_cast<float*>(own + ping_pong::kStaged);
    ping_pong::staged_is_free();
    biases[threadIdx.x % 128] = of_column;
    ping_pong::sync_group(static_cast<int>(threadIdx.x) / 128);
#pragma unroll
    for (int n = 0; n < 16; ++n) {
      const float2 of_pair = *reinterpret_cast<const float2*>(biases + ping_pong::pair_column(n));
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int e = 4 * n; e < 4 * n + 4; ++e) d[half][e] = value<kF>(d[half][e] + (e % 2 ? of_pair.y : of_pair.x));
    }
    if (squares && u.column < min(begins[1], columns)) add_squares(u, d);
    ping_pong::stage(fused::address(own), d, [&](int block, int half, uint32_t from) {
      const int column = u.column + 64 * block, part = column >= begins[2] ? 2 : column >= begins[1] ? 1 : 0;
      if (column < columns)
        ping_pong::store_block(part == 2   ? values[2]
                               : part == 1 ? values[1]
                                           : values[0],
                               column - (part == 2   ? begins[2]
                                         : part == 1 ? begins[1]
                                                     : 0),
                               u.row + 64 * half, from);
    });
  }
};

}  // namespace enricher

namespace {

CUtensorMap blocks_of(const Tensor& x, int64_t first, int64_t last) {
  return fused::tensor_map(matrix(x.slice(first, last), x.dim(1)), last - first, x.dim(1), 64);
}

template <Activation kF>
void launch(int device, const Tensor& x, const Tensor& weight, const Tensor& bias, std::span<const EnrichedPart> parts,
            const Tensor& squares) {
  const int64_t R = x.dim(0), first = parts.front().column, last = parts.back().column + parts.back().value.dim(1);
  enricher::Forward<kF> work{blocks_of(x, parts.front().row, R),
                             blocks_of(weight, first, last),
                             {},
                             {INT_MAX, INT_MAX, INT_MAX},
                             pointer<float>(bias) + first,
                             static_cast<int>(R - parts.front().row),
                             static_cast<int>(last - first),
                             static_cast<int>(x.dim(1)),
                             parts.front().column == 0 ? pointer_or_null<float>(squares) : nullptr};
  for (size_t p = 0; p < parts.size(); ++p) {
    work.values[p] = blocks_of(parts[p].value, 0, parts[p].value.dim(0)), work.begins[p] = static_cast<int>(parts[p].column - first);
    count_as_written(stream(device), parts[p].value);
  }
  ping_pong::launch(device, work);
}

}  // namespace

bool enrich_values(int device, Activation f, const Tensor& x, const Tensor& weight, const Tensor& bias, std::span<const EnrichedPart> parts,
                   const Tensor& squares) {
  for (const EnrichedPart& part : parts)
    if (part.input || (part.column - parts.front().column) % 64 != 0) return false;
  if (parts.size() > enricher::kMostParts) return false;
  if (f == Activation::relu2)
    launch<Activation::relu2>(device, x, weight, bias, parts, squares);
  else if (f == Activation::relu)
    launch<Activation::relu>(device, x, weight, bias, parts, squares);
  else if (f == Activation::none)
    launch<Activation::none>(device, x, weight, bias, parts, squares);
  else
    return false;
  return true;
}

}  // namespace saccade::cuda
