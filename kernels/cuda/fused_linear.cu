#include "kernels/cuda/fused_linear.h"

#include <cmath>

#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/tensor_core.cuh"
#include "kernels/cuda/wide_gemm.cuh"

namespace saccade::cuda {

/// What follows the products. Sums are rounded first, as those of separate passes are.
namespace epilogues {

__device__ __forceinline__ void round_sums(float (&x)[8]) {
#pragma unroll
  for (int v = 0; v < 8; v += 2) {
    const uint32_t pair = pack_bf16(x[v], x[v + 1]);
    x[v] = __uint_as_float(pair << 16), x[v + 1] = __uint_as_float(pair & 0xffff0000u);
  }
}
__device__ __forceinline__ void store(bf16* to, const float (&x)[8]) {
  *reinterpret_cast<uint4*>(to) = make_uint4(pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]), pack_bf16(x[4], x[5]), pack_bf16(x[6], x[7]));
}
/// Of the four lanes that hold a row.
__device__ __forceinline__ int own_columns() { return static_cast<int>(threadIdx.x) % 4 * 8; }

/// The first half of a tile are gates, the second what goes up.
template <Activation kF>
struct Gate {
  static constexpr bool kBeside = true;
  bf16* y;
  template <class Take>
  __device__ __forceinline__ void operator()(Take&& take, int row, int column, int rows, int columns) const {
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      float gate[2][8], up[2][8];
      take(0, part, gate);
      take(1, part, up);
      const int at = column + 32 * part + own_columns();
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        round_sums(gate[i]), round_sums(up[i]);
#pragma unroll
        for (int v = 0; v < 8; ++v) gate[i][v] = value<kF>(gate[i][v]) * up[i][v];
        if (row + 8 * i < rows && at < columns) store(y + int64_t{row + 8 * i} * columns + at, gate[i]);
      }
    }
  }
};

/// Norm and rotation of queries and keys. Half a tile has whole heads of D; both of a pair (i, i + D/2) lie in the same lane.
template <int D>
struct Heads {
  static constexpr int kParts = D / 32;
  bf16 *q, *k, *v;
  const float *q_gain, *k_gain;  ///< null: none
  int width, length;             ///< of q, k and v each; positions of a sequence
  int before;                    ///< columns of what the product leaves out
  QkNorm norm;
  double turns[D / 2];  ///< of each pair from one position to the next

  /// Cosines and sines of the lane's pairs at two rows.
  struct Angles {
    float2 at[2][kParts / 2][8];
  };
  __device__ __forceinline__ void set(Angles& angles, int row) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const double position = (row + 8 * i) % length;
#pragma unroll
      for (int p = 0; p < kParts / 2; ++p)
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const double turn = position * turns[32 * p + own_columns() + j];
          sincospif(static_cast<float>(2 * (turn - rint(turn))), &angles.at[i][p][j].y, &angles.at[i][p][j].x);
        }
    }
  }

  __device__ __forceinline__ float inverse_norm(float squares) const {
    if (norm == QkNorm::none) return 1.0f;
    return norm == QkNorm::l2 ? rsqrtf(squares + 1e-12f) : rsqrtf(squares / static_cast<float>(D) + 1e-5f);
  }

  /// Row i of x.
  __device__ __forceinline__ void prepare(float (&x)[kParts][2][8], int i, const float* gain, const Angles& angles) const {
    float squares = 0;
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      round_sums(x[p][i]);
#pragma unroll
      for (int j = 0; j < 8; ++j) squares += x[p][i][j] * x[p][i][j];
    }
    squares += __shfl_xor_sync(0xffffffffu, squares, 1);
    const float inverse = inverse_norm(squares + __shfl_xor_sync(0xffffffffu, squares, 2));
#pragma unroll
    for (int p = 0; p < kParts; ++p)
#pragma unroll
      for (int j = 0; j < 8; ++j) x[p][i][j] *= inverse * (gain ? gain[32 * p + own_columns() + j] : 1.0f);
#pragma unroll
    for (int p = 0; p < kParts / 2; ++p)
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float2 angle = angles.at[i][p][j];
        const float u = x[p][i][j], w = x[p + kParts / 2][i][j];
        x[p][i][j] = u * angle.x - w * angle.y;
        x[p + kParts / 2][i][j] = u * angle.y + w * angle.x;
      }
  }

  template <class Take>
  __device__ __forceinline__ void operator()(Take&& take, int row, int column, int rows, int columns) const {
    Angles angles;
    if (column + before < 2 * width) set(angles, row);
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int head = 0; head < fused::kTile / D; ++head) {
        float x[kParts][2][8];
#pragma unroll
        for (int p = 0; p < kParts; ++p) take(half, head * kParts + p, x[p]);
        const int in_product = column + half * fused::kTile + head * D, at = in_product + before, side = at / width;
        bf16* to = (side == 2 ? v : side == 1 ? k : q) + at % width + own_columns();
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if (side < 2) prepare(x, i, side == 1 ? k_gain : q_gain, angles);
          if (row + 8 * i < rows && in_product < columns)
#pragma unroll
            for (int p = 0; p < kParts; ++p) store(to + int64_t{row + 8 * i} * width + 32 * p, x[p][i]);
        }
      }
  }
};

}  // namespace epilogues

namespace {

int64_t rows_of(const Tensor& x) { return x.size() / x.dim(-1); }

/// Few rows leave tiles empty.
bool fills(int device, const Tensor& x) {
  return rows_of(x) >= 2 * fused::kTile && x.dim(-1) >= 6 * fused::kDepth && hopper::available(device);
}

bool follows(const Tensor& next, const Tensor& matrix) { return static_cast<char*>(matrix.raw()) + matrix.bytes() == next.raw(); }

template <int D>
void launch_heads(int device, const Tensor& x, const HeadProjection& p, const Tensor& first, const ProjectedHeads& y) {
  const int64_t in = x.dim(-1), width = first.dim(0);
  const auto gain = [](const Tensor& g) { return g ? pointer<float>(g) : nullptr; };
  epilogues::Heads<D> body{y.q ? pointer<bf16>(y.q) : nullptr,
                           pointer<bf16>(y.k),
                           pointer<bf16>(y.v),
                           gain(p.query_gain),
                           gain(p.key_gain),
                           static_cast<int>(width),
                           static_cast<int>(x.dim(1)),
                           static_cast<int>(y.q ? 0 : width),
                           p.options.norm,
                           {}};
  if (p.options.rotary_base != 0)
    for (int i = 0; i < D / 2; ++i) body.turns[i] = std::pow(p.options.rotary_base, -2.0 * i / D) * 0.15915494309189533577;
  fused::wide_product(device, rows_of(x), (y.q ? 3 : 2) * width, in, matrix(x, in), matrix(first, in), {}, body);
}

}  // namespace

bool gated_product(int device, Activation f, const Tensor& x, const Tensor& gate, const Tensor& up, const Tensor& y) {
  const int64_t in = x.dim(-1), out = gate.dim(0);
  if (x.dtype() != DType::bf16 || in % 8 != 0 || out % 8 != 0 || !fills(device, x)) return false;
  with_activation(f, [&](auto a) {
    const epilogues::Gate<decltype(a)::value> body{pointer<bf16>(y)};
    fused::wide_product(device, rows_of(x), 2 * out, in, matrix(x, in), matrix(gate, in), matrix(up, in), body);
  });
  return true;
}

bool heads_product(int device, const Tensor& x, const HeadProjection& p, const Tensor& query, const Tensor& key, const Tensor& value,
                   const ProjectedHeads& y) {
  const int64_t in = x.dim(-1), width = key.dim(0), head = width / p.heads;
  if (x.dtype() != DType::bf16 || in % 8 != 0 || width % fused::kTile != 0 || (head != 64 && head != 128) || value.dim(0) != width ||
      (query && (query.dim(0) != width || !follows(key, query))) || !follows(value, key) || !fills(device, x))
    return false;
  const Tensor& first = query ? query : key;
  head == 64 ? launch_heads<64>(device, x, p, first, y) : launch_heads<128>(device, x, p, first, y);
  return true;
}

}  // namespace saccade::cuda
