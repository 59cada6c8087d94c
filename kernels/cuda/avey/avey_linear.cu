#include "kernels/ops/avey/linear_cuda.h"

#include "kernels/cuda/device/activation.cuh"
#include "kernels/cuda/gemm/fused_gemm.cuh"

namespace saccade::cuda {

/// What follows the products.
namespace epilogues {

__device__ __forceinline__ void unpack(const Pack<bf16>& pack, float (&to)[8]) {
#pragma unroll
  for (int v = 0; v < 8; ++v) to[v] = to_float(pack.v[v]);
}
__device__ __forceinline__ void store(bf16* to, const float (&from)[8]) {
  Pack<bf16> pack;
#pragma unroll
  for (int v = 0; v < 8; ++v) pack.v[v] = from_float<bf16>(from[v]);
  store_pack(to, pack);
}
__device__ __forceinline__ void to_cache(const bf16* from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from)); }

struct Nothing {};
struct Bias {
  float4 low, high;
};
__device__ __forceinline__ Bias load_bias(const float* bias) {
  const auto* from = reinterpret_cast<const float4*>(bias);
  return {from[0], from[1]};
}
__device__ __forceinline__ void add_bias(float (&x)[8], const Bias& bias) {
  const auto &low = bias.low, &high = bias.high;
  x[0] += low.x, x[1] += low.y, x[2] += low.z, x[3] += low.w, x[4] += high.x, x[5] += high.y, x[6] += high.z, x[7] += high.w;
}

/// Z's parts beside each other; those that begin at a later row are not asked for before it.
template <Activation kF>
struct Enrich {
  const float* bias;
  bf16 *value[3], *input[3];
  int first[3], width[3];
  __device__ Bias of_column(int column) const { return load_bias(bias + column); }
  __device__ Nothing of_piece(int, int) const { return {}; }
  __device__ void prefetch(int, int) const {}
  __device__ void operator()(int row, int column, float (&x)[8], const Bias& of_bias, Nothing) const {
    const int part = column >= first[2] ? 2 : column >= first[1] ? 1 : 0;
    const auto of_part = [&](auto zero, auto one, auto two) { return part == 2 ? two : part == 1 ? one : zero; };
    const int to = row * of_part(width[0], width[1], width[2]) + column - of_part(first[0], first[1], first[2]);
    add_bias(x, of_bias);
    if (bf16* kept = of_part(input[0], input[1], input[2])) store(kept + to, x);
#pragma unroll
    for (int v = 0; v < 8; ++v) x[v] = cuda::value<kF>(x[v]);
    store(of_part(value[0], value[1], value[2]) + to, x);
  }
};

struct StoreOrAdd {
  bf16* to;
  int width;
  bool add;
  __device__ Nothing of_column(int) const { return {}; }
  __device__ void prefetch(int row, int column) const {
    if (add) to_cache(to + row * width + column);
  }
  __device__ Pack<bf16> of_piece(int row, int column) const { return add ? load_pack(to + row * width + column) : Pack<bf16>{}; }
  __device__ void operator()(int row, int column, float (&x)[8], Nothing, const Pack<bf16>& before) const {
    bf16* at = to + row * width + column;
    if (add) {
      float old[8];
      unpack(before, old);
#pragma unroll
      for (int v = 0; v < 8; ++v) x[v] += old[v];
    }
    store(at, x);
  }
};

}  // namespace epilogues

namespace {

using namespace epilogues;
using fused::Term;

/// Pieces of eight, and offsets that fit into an int.
bool suits(std::initializer_list<int64_t> widths, const Tensor& x) {
  for (int64_t width : widths)
    if (width % 8 != 0 || x.dim(0) * width > INT_MAX) return false;
  return x.dtype() == DType::bf16;
}

/// A warp per row.
__global__ void __launch_bounds__(256) row_squares_kernel(const bf16* x, float* squares, int64_t rows, int columns) {
  const int64_t row = int64_t{blockIdx.x} * 8 + threadIdx.x / 32;
  if (row >= rows) return;
  for (int tile = 0; tile < columns / kSquaresTile; ++tile) {
    float sum = 0;
    for (int i = static_cast<int>(threadIdx.x) % 32; i < kSquaresTile; i += 32) {
      const float v = to_float(x[row * columns + tile * kSquaresTile + i]);
      sum += v * v;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) squares[tile * rows + row] = sum;
  }
}

Matrix rows_of(const Tensor& x, int64_t first) { return matrix(x.slice(first, x.dim(0)), x.dim(1)); }

}  // namespace

bool enrich_product(int device, Activation f, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    const std::vector<EnrichedPart>& parts, const Tensor& squares) {
  const int64_t R = x.dim(0), D = x.dim(1);
  for (const EnrichedPart& part : parts)
    if (!suits({part.value.dim(1), D}, x)) return false;
  if (!hopper::available(device)) return false;
  bool fallback = false;
  // Parts of the same rows in one product.
  for (size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    for (end = begin + 1; end < parts.size() && parts[end].row == parts[begin].row;) ++end;
    if (enrich_values(device, f, x, weight, bias, std::span(parts).subspan(begin, end - begin), squares)) continue;
    if (begin == 0) fallback = true;
    const int64_t first = parts[begin].column, last = parts[end - 1].column + parts[end - 1].value.dim(1);
    with_activation(f, [&](auto a) {
      Enrich<decltype(a)::value> body{pointer<float>(bias) + first, {}, {}, {INT_MAX, INT_MAX, INT_MAX}, {}};
      for (size_t p = begin; p < end; ++p) {
        const EnrichedPart& part = parts[p];
        body.value[p - begin] = pointer<bf16>(part.value);
        body.input[p - begin] = part.input ? pointer<bf16>(part.input) : nullptr;
        body.first[p - begin] = static_cast<int>(part.column - first), body.width[p - begin] = static_cast<int>(part.value.dim(1));
      }
      fused::product<false>(device, R - parts[begin].row, last - first,
                            {Term{rows_of(x, parts[begin].row), matrix(weight.slice(first, last), D), D}}, body);
    });
  }
  if (squares && fallback) row_squares(stream(device), parts[0].value, squares);
  return true;
}

bool enrich_product_backward(int device, const std::vector<EnrichedPart>& parts, const std::vector<Tensor>& d, const Tensor& weight,
                             const Tensor& dx, bool add) {
  const int64_t R = dx.dim(0), D = dx.dim(1), split = parts.size() > 1 ? parts[1].row : 0;
  for (const EnrichedPart& part : parts)
    if (!suits({part.value.dim(1), D}, dx)) return false;
  if (!hopper::available(device)) return false;
  const auto term = [&](size_t p, int64_t first) {
    return Term{rows_of(d[p], first), matrix(weight.slice(parts[p].column, parts[p].column + d[p].dim(1)), D), d[p].dim(1)};
  };
  const auto body = [&](int64_t first) { return StoreOrAdd{pointer<bf16>(dx) + first * D, static_cast<int>(D), add}; };
  if (split > 0) fused::product<true>(device, split, D, {term(0, 0)}, body(0));
  if (parts.size() == 1) fused::product<true>(device, R, D, {term(0, 0)}, body(0));
  if (parts.size() == 2) fused::product<true>(device, R - split, D, {term(0, split), term(1, 0)}, body(split));
  if (parts.size() == 3) fused::product<true>(device, R - split, D, {term(0, split), term(1, 0), term(2, 0)}, body(split));
  return true;
}

void row_squares(Stream stream, const Tensor& x, const Tensor& squares) {
  row_squares_kernel<<<blocks_for(x.dim(0), 8), 256, 0, stream>>>(pointer<bf16>(x), pointer<float>(squares), x.dim(0),
                                                                  static_cast<int>(x.dim(1)));
  check_launch();
}

}  // namespace saccade::cuda
