// A block takes some positions of some sequences; kLanes threads hold a head: thread i the pieces i of both halves, so that a
// pair (i, i + d/2) lies in one thread. A thread stays with its position, whose angles it keeps in registers.
#include <cmath>

#include "kernels/cuda/basic/head_rows.cuh"
#include "kernels/ops/head_projection/packed_heads_cuda.h"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256, kHeadsAtOnce = 16;  ///< of one position, by neighbouring threads

/// Of queries (0) and keys (1).
template <class T>
struct Sides {
  T *packed, *heads[2];
  const T* raw;  ///< backward with a norm: packed as it came from the product
  const float* norm_weight[2];
  float* partial[2];
};

/// That of this block. An index known only when it runs would put kernel arguments into memory.
template <class P>
__device__ __forceinline__ P mine_of(const P (&sides)[2]) {
  return blockIdx.z == 0 ? sides[0] : sides[1];
}

struct Problem {
  int batch, length, heads, splits;
  int parts;   ///< of a row of packed; queries and keys come first
  int groups;  ///< of positions, that a block takes one after the other
  QkNorm norm;
  double log2_base;  ///< of the rotary angles; 0: no rotation
};

/// What a thread works on.
template <int kLanes, class T>
struct Mine {
  static constexpr int kPairs = kVector<T>, kHalf = kLanes * kPairs, kPositions = kThreads / kLanes / kHeadsAtOnce;
  float2 angle[kPairs];
  Row<T> norm_weight;
  int lane, first_head, position;

  static_assert(kThreads % kHalf == 0);
  double turns_per_position;  ///< in double: positions reach 10^5

  __device__ Mine(const Problem& p, const float* norm_weights)
      : lane(threadIdx.x % kLanes), first_head(threadIdx.x / kLanes % kHeadsAtOnce), position(0) {
    const double pair = static_cast<double>(threadIdx.x % kHalf) / kHalf;
    turns_per_position = p.log2_base != 0 ? turns_of_pair(pair, p.log2_base) : 0.0;
#pragma unroll
    for (int v = 0; v < kPairs; ++v) {
      norm_weight.low[v] = norm_weights ? norm_weights[lane * kPairs + v] : 1.0f;
      norm_weight.high[v] = norm_weights ? norm_weights[kHalf + lane * kPairs + v] : 1.0f;
    }
  }

  /// The block's group number `group`. `angles`: shared memory for kPositions * kHalf.
  __device__ void take(const Problem& p, int group, float2* angles) {
    const int first = (static_cast<int>(blockIdx.x) * p.groups + group) * kPositions, slot = threadIdx.x / kLanes / kHeadsAtOnce;
    position = first + slot;
    __syncthreads();
    for (int item = threadIdx.x; item < kPositions * kHalf; item += kThreads) {
      angles[item] = cosine_and_sine(static_cast<double>(first + item / kHalf) * turns_per_position);
    }
    __syncthreads();
#pragma unroll
    for (int v = 0; v < kPairs; ++v) angle[v] = angles[slot * kHalf + lane * kPairs + v];
  }

  __device__ __forceinline__ void rotate(Row<T>& x, float direction) const {
#pragma unroll
    for (int v = 0; v < kPairs; ++v) {
      const float u = x.low[v], w = x.high[v], s = direction * angle[v].y;
      x.low[v] = u * angle[v].x - w * s;
      x.high[v] = u * s + w * angle[v].x;
    }
  }

  /// f(offset in packed, offset in heads) for every head of this thread.
  template <class F>
  __device__ __forceinline__ void for_heads(const Problem& p, F&& f) const {
    const int share = (p.batch + p.splits - 1) / p.splits, begin = blockIdx.y * share, end = min(p.batch, begin + share);
    const int heads = position < p.length ? max(0, end - begin) * p.heads : 0;
#pragma unroll 2
    for (int i = first_head; i < heads; i += kHeadsAtOnce) {
      const int64_t row = int64_t{begin + i / p.heads} * p.length + position;
      const int at = i % p.heads * 2 * kHalf + lane * kPairs;
      const int64_t width = int64_t{p.heads} * 2 * kHalf;
      f((p.parts * row + blockIdx.z) * width + at, row * width + at);
    }
  }
};

template <int kLanes, bool kNorm, class T>
__global__ void __launch_bounds__(kThreads) forward_kernel(Problem p, Sides<T> sides) {
  using M = Mine<kLanes, T>;
  __shared__ float2 angles[M::kPositions * M::kHalf];
  M mine(p, mine_of(sides.norm_weight));
  T* to = mine_of(sides.heads);
  const auto rotate_head = [&](int64_t packed, int64_t at) {
    Row<T> row = load_row(sides.packed + packed, M::kHalf);
    if constexpr (kNorm) {
      const float r = inverse_norm<kLanes>(p.norm, row);
#pragma unroll
      for (int v = 0; v < M::kPairs; ++v) row.low[v] *= r * mine.norm_weight.low[v], row.high[v] *= r * mine.norm_weight.high[v];
    }
    mine.rotate(row, 1);
    store_row(to + at, M::kHalf, row);
  };
  for (int group = 0; group < p.groups; ++group) {
    mine.take(p, group, angles);
    mine.for_heads(p, rotate_head);
  }
}

/// partial[block, i] = Σ of the block's threads' share of d_norm_weight[i], in order.
template <int kLanes, class T>
__device__ void sum_norm_weights(const Row<T>& d_norm_weight, float* partial) {
  constexpr int kHalf = kLanes * kVector<T>, kSlots = kThreads / kLanes;
  __shared__ float sums[kSlots][2 * kHalf];
  const int lane = threadIdx.x % kLanes, slot = threadIdx.x / kLanes;
#pragma unroll
  for (int v = 0; v < kVector<T>; ++v) {
    sums[slot][lane * kVector<T> + v] = d_norm_weight.low[v];
    sums[slot][kHalf + lane * kVector<T> + v] = d_norm_weight.high[v];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 2 * kHalf; i += kThreads) {
    float sum = 0;
    for (int s = 0; s < kSlots; ++s) sum += sums[s][i];
    partial[(int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * 2 * kHalf + i] = sum;
  }
}

template <int kLanes, bool kNorm, class T>
__global__ void __launch_bounds__(kThreads) backward_kernel(Problem p, Sides<T> sides) {
  using M = Mine<kLanes, T>;
  __shared__ float2 angles[M::kPositions * M::kHalf];
  M mine(p, mine_of(sides.norm_weight));
  const T* from = mine_of(sides.heads);  // null: packed, in place
  Row<T> d_norm_weight = {};
  const auto rotate_back = [&](int64_t packed, int64_t at) {
    Row<T> g = load_row(from ? from + at : sides.packed + packed, M::kHalf);
    mine.rotate(g, -1);
    if constexpr (kNorm) {
      const Row<T> x = load_row(sides.raw + packed, M::kHalf);
      const float r = inverse_norm<kLanes>(p.norm, x);
#pragma unroll
      for (int v = 0; v < M::kPairs; ++v) {
        d_norm_weight.low[v] += g.low[v] * x.low[v] * r;
        d_norm_weight.high[v] += g.high[v] * x.high[v] * r;
        g.low[v] *= mine.norm_weight.low[v], g.high[v] *= mine.norm_weight.high[v];
      }
      const float mean = dot<kLanes>(g, x) * r * r / (p.norm == QkNorm::rms ? static_cast<float>(2 * M::kHalf) : 1.0f);
#pragma unroll
      for (int v = 0; v < M::kPairs; ++v) {
        g.low[v] = r * (g.low[v] - x.low[v] * mean);
        g.high[v] = r * (g.high[v] - x.high[v] * mean);
      }
    }
    store_row(sides.packed + packed, M::kHalf, g);
  };
  for (int group = 0; group < p.groups; ++group) {
    mine.take(p, group, angles);
    mine.for_heads(p, rotate_back);
  }
  if constexpr (kNorm)
    if (float* partial = mine_of(sides.partial)) sum_norm_weights<kLanes>(d_norm_weight, partial);
}

/// A thread takes some heads at least, so that its part of the angles is worth it.
Problem problem(const Shape& q, const HeadOptions& options) {
  constexpr int64_t kHeadsOfThread = 4;
  const int64_t splits = packed_head_splits(q), heads = (q[0] + splits - 1) / splits * q[2];
  return {static_cast<int>(q[0]),
          static_cast<int>(q[1]),
          static_cast<int>(q[2]),
          static_cast<int>(splits),
          2,
          static_cast<int>(std::max<int64_t>(1, kHeadsOfThread * kHeadsAtOnce / heads)),
          options.norm,
          options.rotary_base == 0 ? 0.0 : std::log2(options.rotary_base)};
}

template <int kLanes>
dim3 grid(const Problem& p) {
  constexpr int kPositions = kThreads / kLanes / kHeadsAtOnce;
  return dim3(blocks_for(p.length, kPositions * p.groups), static_cast<unsigned>(p.splits), 2);
}

const float* norm_weight_of(const Tensor& norm_weight) { return norm_weight ? pointer<float>(norm_weight) : nullptr; }

}  // namespace

void unpack_heads(Stream stream, const Tensor& packed, const Tensor& q_norm_weight, const Tensor& k_norm_weight, const HeadOptions& options,
                  const Tensor& q, const Tensor& k) {
  const Problem p = problem(q.shape(), options);
  dispatch_cuda(q.dtype(), [&](auto t) {
    using T = decltype(t);
    const Sides<T> sides{
        pointer<T>(packed), {pointer<T>(q), pointer<T>(k)}, nullptr, {norm_weight_of(q_norm_weight), norm_weight_of(k_norm_weight)}, {}};
    for_lanes(q.dtype(), q.dim(-1), [&](auto lanes) {
      constexpr int kLanes = decltype(lanes)::value;
      const auto kernel = p.norm == QkNorm::none ? forward_kernel<kLanes, false, T> : forward_kernel<kLanes, true, T>;
      kernel<<<grid<kLanes>(p), kThreads, 0, stream>>>(p, sides);
    });
  });
  check_launch();
}

void unpack_heads_backward(Stream stream, const Tensor& packed, const Tensor& q_norm_weight, const Tensor& k_norm_weight,
                           const HeadOptions& options, const Tensor& dq, const Tensor& dk, const Tensor& d_packed,
                           const std::array<GradTarget, 2>& d_norm_weights, const Tensor& partial) {
  const Problem p = problem(dq.shape(), options);
  int64_t parts = 0;
  dispatch_cuda(dq.dtype(), [&](auto t) {
    using T = decltype(t);
    Sides<T> sides{pointer<T>(d_packed),
                   {pointer<T>(dq), pointer<T>(dk)},
                   packed ? pointer<T>(packed) : nullptr,
                   {norm_weight_of(q_norm_weight), norm_weight_of(k_norm_weight)},
                   {}};
    for (int64_t i = 0; i < 2; ++i)
      if (d_norm_weights[static_cast<size_t>(i)]) sides.partial[i] = pointer<float>(partial.slice(i, i + 1));
    for_lanes(dq.dtype(), dq.dim(-1), [&](auto lanes) {
      constexpr int kLanes = decltype(lanes)::value;
      const dim3 blocks = grid<kLanes>(p);
      parts = int64_t{blocks.x} * blocks.y;
      const auto kernel = p.norm == QkNorm::none ? backward_kernel<kLanes, false, T> : backward_kernel<kLanes, true, T>;
      kernel<<<blocks, kThreads, 0, stream>>>(p, sides);
    });
  });
  check_launch();
  for (int64_t i = 0; i < 2; ++i)
    if (const GradTarget& d_norm_weight = d_norm_weights[static_cast<size_t>(i)])
      sum_parts(stream, partial.slice(i, i + 1).reshape({partial.dim(1), partial.dim(2)}).slice(0, parts), d_norm_weight.tensor,
                d_norm_weight.add);
}

void rotate_heads_back(Stream stream, const HeadShape& shape, double rotary_base, const Tensor& packed, int64_t stride) {
  HeadOptions options;
  options.rotary_base = rotary_base;
  Problem p = problem({shape.batch, shape.length, shape.heads, shape.width}, options);
  p.parts = static_cast<int>(stride / shape.stride());
  dispatch_cuda(packed.dtype(), [&](auto t) {
    using T = decltype(t);
    for_lanes(packed.dtype(), shape.width, [&](auto lanes) {
      constexpr int kLanes = decltype(lanes)::value;
      backward_kernel<kLanes, false, T><<<grid<kLanes>(p), kThreads, 0, stream>>>(p, Sides<T>{pointer<T>(packed), {}, nullptr, {}, {}});
    });
  });
  check_launch();
}

}  // namespace saccade::cuda
