#include "kernels/ops/head_projection/fused_linear_cuda.h"

#include <cmath>

#include "kernels/cuda/device/activation.cuh"
#include "kernels/cuda/device/rotation.cuh"
#include "kernels/cuda/device/tensor_core.cuh"
#include "kernels/cuda/gemm/wide_gemm.cuh"

namespace saccade::cuda {

/// What follows the products. Sums are rounded first, as those of separate passes are.
namespace epilogues {

__device__ __forceinline__ void round_pair(float& x, float& y) {
  const uint32_t pair = pack_bf16(x, y);
  x = __uint_as_float(pair << 16), y = __uint_as_float(pair & 0xffff0000u);
}
struct Nothing {};

/// x · 1 / (1 + exp(−x)) · up of two at once, for one reciprocal. exp is held at 2^63, so that the product of two stays finite:
/// beyond it the result is x · up · 1e-19, not nearer to zero.
__device__ __forceinline__ void gate_pair(float (&x)[2], float u, float v) {
  const auto denominator = [](float x) { return 1.0f + power_of_two(fminf(-1.4426950408889634f * x, 63.0f)); };
  const float a = denominator(x[0]), b = denominator(x[1]), of_both = reciprocal(a * b);
  x[0] *= u * (of_both * b), x[1] *= v * (of_both * a);
}

/// The first half of a tile are gates, the second what goes up.
template <Activation kF>
struct Gate {
  static constexpr bool kTwoMatrices = true;
  CUtensorMap y;
  __device__ __forceinline__ Nothing own() const { return {}; }
  __device__ __forceinline__ void finish(Nothing, float (&d)[2][64], const fused::WarpTile& c, const fused::Staging& staging) const {
#pragma unroll
    for (int i = 0; i < 64; i += 2) {
      float gate[2] = {d[0][i], d[0][i + 1]};
      round_pair(gate[0], gate[1]), round_pair(d[1][i], d[1][i + 1]);
      if constexpr (kF == Activation::silu)
        gate_pair(gate, d[1][i], d[1][i + 1]);
      else
        gate[0] = value<kF>(gate[0]) * d[1][i], gate[1] = value<kF>(gate[1]) * d[1][i + 1];
      d[0][i] = gate[0], d[0][i + 1] = gate[1];
    }
    staging.put<2>(d, [&](int block, uint32_t from) {
      if (c.column + 64 * block < c.columns) fused::store_block(y, c.column + 64 * block, c.row, from);
    });
  }
};

/// Norm and rotation of queries and keys. Half a tile has whole heads of D; both of a pair (i, i + D/2) lie in the same lane.
template <int D>
struct Heads {
  static constexpr int kPairs = D / 16;  ///< of columns 8 n …, in a lane
  CUtensorMap to[3];                     ///< q, k and v
  const float* norm_weight[2];           ///< of q and k; null: none
  int width, length;                     ///< of q, k and v each; positions of a sequence
  int before;                            ///< columns of what the product leaves out
  QkNorm norm;
  float of_squares, epsilon;  ///< of the norm
  double revolutions[D / 2];  ///< of each pair from one position to the next

  __device__ __forceinline__ int side_of(int column) const { return (column >= width) + (column >= 2 * width); }
  /// Cosine and sine.
  using Angle = float2;
  static __device__ __forceinline__ Angle angle(double revolutions) { return cosine_and_sine(revolutions); }
  static __device__ __forceinline__ Angle add(Angle a, Angle b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }

  /// Revolutions of pairs lane, lane + 32, …; and how far the lane's pairs rotate from the first of eight rows to the lane's.
  struct Own {
    double revolutions[D / 64];
    Angle in_eight[kPairs][2];
  };
  __device__ __forceinline__ Own own() const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    Own own;
    for (int h = 0; h < D / 64; ++h) own.revolutions[h] = revolutions[32 * h + lane];
    for (int n = 0; n < kPairs; ++n)
      for (int j = 0; j < 2; ++j) own.in_eight[n][j] = angle(lane / 4 * revolutions[fused::pair_column(n) + j]);
    return own;
  }

  /// Angles of the lane's pairs in its line of the eight rows from `row` on: each lane rotates a pair of its own to the first of them, and
  /// all go on from there. Sequences have at least eight positions; where one ends among these rows, the next starts from before its first.
  __device__ __forceinline__ void set(Angle (&angles)[kPairs][2], const Own& own, int row, uint32_t scratch) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, first = row % length;
    __syncwarp();
#pragma unroll
    for (int h = 0; h < D / 64; ++h) {
      const Angle begin = angle(first * own.revolutions[h]);
      Angle behind = begin;
      if (first + 8 > length) behind = angle((first - length) * own.revolutions[h]);
      const uint32_t at = scratch + static_cast<uint32_t>(32 * h + lane) * 8;
      asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(begin.x), "f"(begin.y) : "memory");
      asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at + D / 2 * 8), "f"(behind.x), "f"(behind.y) : "memory");
    }
    __syncwarp();
    const uint32_t from = scratch + (first + lane / 4 >= length ? D / 2 * 8 : 0);
#pragma unroll
    for (int n = 0; n < kPairs; ++n) {
      Angle a, b;
      asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(a.x), "=f"(a.y), "=f"(b.x), "=f"(b.y)
                   : "r"(from + static_cast<uint32_t>(fused::pair_column(n)) * 8));
      angles[n][0] = add(a, own.in_eight[n][0]), angles[n][1] = add(b, own.in_eight[n][1]);
    }
  }

  /// Line i (of two) of the heads in half a tile.
  __device__ __forceinline__ void prepare(float (&x)[64], int i, const float* norm_weight, const Angle (&angles)[kPairs][2]) const {
    constexpr int kHeads = fused::kTile / D;
    float inverse[kHeads];
#pragma unroll
    for (int head = 0; head < kHeads; ++head) {
      float squares[2] = {0, 0};
#pragma unroll
      for (int n = 0; n < 2 * kPairs; ++n) {
        float* u = x + head * (D / 2) + 4 * n + 2 * i;
        round_pair(u[0], u[1]);
        squares[0] += u[0] * u[0], squares[1] += u[1] * u[1];
      }
      inverse[head] = squares[0] + squares[1];
    }
#pragma unroll
    for (int head = 0; head < kHeads; ++head) {
      const float root = rsqrtf(quad_sum(inverse[head]) * of_squares + epsilon);
      inverse[head] = norm == QkNorm::none ? 1.0f : root;
    }
#pragma unroll
    for (int n = 0; n < kPairs; ++n) {
      float2 g{1, 1}, h{1, 1};
      if (norm_weight) {
        g = *reinterpret_cast<const float2*>(norm_weight + fused::pair_column(n));
        h = *reinterpret_cast<const float2*>(norm_weight + D / 2 + fused::pair_column(n));
      }
      const float norm_weights[2][2] = {{g.x, g.y}, {h.x, h.y}};
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const Angle of_u{norm_weights[0][j] * angles[n][j].x, norm_weights[0][j] * angles[n][j].y};
        const Angle of_w{norm_weights[1][j] * angles[n][j].x, norm_weights[1][j] * angles[n][j].y};
#pragma unroll
        for (int head = 0; head < kHeads; ++head) {
          float *u = x + head * (D / 2) + 4 * n + 2 * i + j, *w = u + 4 * kPairs;
          const float rotated = *u * of_u.x - *w * of_w.y;
          *w = (*u * of_u.y + *w * of_w.x) * inverse[head], *u = rotated * inverse[head];
        }
      }
    }
  }

  __device__ __forceinline__ void finish(const Own& own, float (&d)[2][64], const fused::WarpTile& c, const fused::Staging& staging) const {
    const int first = c.column + before;
    if (first < 2 * width) {
      staging.wait();
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        Angle angles[kPairs][2];
        set(angles, own, c.row + 8 * i, staging.at + static_cast<uint32_t>(i) * fused::Staging::kBytes);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int side = side_of(first + half * fused::kTile);
          if (side < 2) prepare(d[half], i, norm_weight[side], angles);
        }
      }
    }
    staging.put<4>(d, [&](int block, uint32_t from) {
      const int at = first + 64 * block, side = side_of(at);
      if (at < 3 * width) fused::store_block(to[side], at - side * width, c.row, from);
    });
  }
};

}  // namespace epilogues

namespace {

int64_t rows_of(const Tensor& x) { return x.size() / x.dim(-1); }

/// Few rows leave tiles empty.
bool fills(int device, const Tensor& x) {
  return rows_of(x) >= 2 * fused::kTile && x.dim(-1) >= 6 * fused::kDepth && hopper::available(device);
}

template <int D>
void launch_heads(int device, const Tensor& x, const HeadProjection& p, const Tensor& first, const ProjectedHeads& y) {
  const int64_t in = x.dim(-1), width = first.dim(0);
  epilogues::Heads<D> body{};
  if (p.query_norm_weight) body.norm_weight[0] = pointer<float>(p.query_norm_weight);
  if (p.key_norm_weight) body.norm_weight[1] = pointer<float>(p.key_norm_weight);
  body.width = static_cast<int>(width), body.length = static_cast<int>(x.dim(1)), body.before = static_cast<int>(y.q ? 0 : width);
  body.norm = p.options.norm;
  body.of_squares = p.options.norm == QkNorm::rms ? 1.0f / D : 1.0f;
  body.epsilon = p.options.norm == QkNorm::rms ? 1e-5f : 1e-12f;
  const Tensor sides[] = {y.q, y.k, y.v};
  for (int i = 0; i < 3; ++i)
    if (sides[i]) body.to[i] = fused::stored(sides[i], width);
  if (p.options.rotary_base != 0)
    for (int i = 0; i < D / 2; ++i) body.revolutions[i] = std::pow(p.options.rotary_base, -2.0 * i / D) * 0.15915494309189533577;
  fused::wide_product(device, rows_of(x), (y.q ? 3 : 2) * width, in, matrix(x, in), matrix(first, in), {}, body);
}

}  // namespace

bool gated_product(int device, Activation f, const Tensor& x, const Tensor& gate, const Tensor& up, const Tensor& y) {
  const int64_t in = x.dim(-1), out = gate.dim(0);
  if (x.dtype() != DType::bf16 || in % 8 != 0 || out % 8 != 0 || !fills(device, x)) return false;
  with_activation(f, [&](auto a) {
    const epilogues::Gate<decltype(a)::value> body{fused::stored(y, out)};
    fused::wide_product(device, rows_of(x), 2 * out, in, matrix(x, in), matrix(gate, in), matrix(up, in), body);
  });
  return true;
}

bool heads_product(int device, const Tensor& x, const HeadProjection& p, const Tensor& query, const Tensor& key, const Tensor& value,
                   const ProjectedHeads& y) {
  const int64_t in = x.dim(-1), width = key.dim(0), head = width / p.heads;
  if (x.dtype() != DType::bf16 || in % 8 != 0 || width % fused::kTile != 0 || (head != 64 && head != 128) || x.dim(1) < 8 ||
      value.dim(0) != width || (query && (query.dim(0) != width || !key.follows(query))) || !value.follows(key) || !fills(device, x))
    return false;
  const Tensor& first = query ? query : key;
  head == 64 ? launch_heads<64>(device, x, p, first, y) : launch_heads<128>(device, x, p, first, y);
  return true;
}

}  // namespace saccade::cuda
