// A block per sequence; kLanes threads hold a head of a query, a key or a value.
#include <cmath>

#include "kernels/cuda/basic/head_rows.cuh"
#include "kernels/cuda/device/start_position.cuh"
#include "kernels/ops/head_projection/next_heads_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
struct Args {
  const T* packed;
  T *q, *keys, *values;
  const float *q_norm_weight, *k_norm_weight;
  int heads;
  int64_t capacity;
  QkNorm norm;
  double log2_base;  ///< of the rotary angles; 0: no rotation
  StartPosition start;
};

template <int kLanes, class T>
__device__ void norm_head(QkNorm norm, const float* weight, int lane, Row<T>& row) {
  constexpr int kPairs = kVector<T>;
  const float r = inverse_norm<kLanes>(norm, row);
#pragma unroll
  for (int v = 0; v < kPairs; ++v) {
    row.low[v] *= r * (weight ? weight[lane * kPairs + v] : 1.0f);
    row.high[v] *= r * (weight ? weight[(kLanes + lane) * kPairs + v] : 1.0f);
  }
}

template <int kLanes, class T>
__global__ void __launch_bounds__(kThreads) next_heads_kernel(const Args<T> a) {
  constexpr int kPairs = kVector<T>, kHalf = kLanes * kPairs;
  __shared__ float2 angles[kHalf];
  const int64_t b = blockIdx.x, width = int64_t{a.heads} * 2 * kHalf, position = a.start(b);
  const int heads_threads = a.heads * kLanes, items = 3 * heads_threads, lane = static_cast<int>(threadIdx.x) % kLanes;
  const auto place = [&](int item) { return item % heads_threads / kLanes * 2 * kHalf + lane * kPairs; };
  const auto load = [&](int item) { return load_row(a.packed + (3 * b + item / heads_threads) * width + place(item), kHalf); };
  Row<T> row{};
  if (static_cast<int>(threadIdx.x) < items) row = load(threadIdx.x);  // on its way while angles are made
  for (int pair = threadIdx.x; pair < kHalf && a.log2_base != 0; pair += kThreads)
    angles[pair] = cosine_and_sine(static_cast<double>(position) * turns_of_pair(static_cast<double>(pair) / kHalf, a.log2_base));
  __syncthreads();
  for (int item = threadIdx.x; item < items; item += kThreads) {
    if (item >= kThreads) row = load(item);
    const int side = item / heads_threads;
    if (side < 2 && a.norm != QkNorm::none) norm_head<kLanes>(a.norm, side == 0 ? a.q_norm_weight : a.k_norm_weight, lane, row);
    if (side < 2 && a.log2_base != 0) {
#pragma unroll
      for (int v = 0; v < kPairs; ++v) {
        const float2 angle = angles[lane * kPairs + v];
        const float u = row.low[v], w = row.high[v];
        row.low[v] = u * angle.x - w * angle.y;
        row.high[v] = u * angle.y + w * angle.x;
      }
    }
    T* to = side == 0 ? a.q + b * width : (side == 1 ? a.keys : a.values) + (b * a.capacity + position) * width;
    store_row(to + place(item), kHalf, row);
  }
}

}  // namespace

void next_heads(Stream stream, const Tensor& packed, const HeadProjection& p, const Tensor& q, const Tensor& keys, const Tensor& values) {
  const HeadOptions& options = p.options;
  dispatch_cuda(q.dtype(), [&](auto t) {
    using T = decltype(t);
    const Args<T> args{pointer<T>(packed),
                       pointer<T>(q),
                       pointer<T>(keys),
                       pointer<T>(values),
                       p.query_norm_weight ? pointer<float>(p.query_norm_weight) : nullptr,
                       p.key_norm_weight ? pointer<float>(p.key_norm_weight) : nullptr,
                       static_cast<int>(p.heads),
                       keys.dim(1),
                       options.norm,
                       options.rotary_base == 0 ? 0.0 : std::log2(options.rotary_base),
                       start_position(options.position)};
    for_lanes(q.dtype(), q.dim(-1), [&](auto lanes) {
      next_heads_kernel<decltype(lanes)::value><<<static_cast<unsigned>(q.dim(0)), kThreads, 0, stream>>>(args);
    });
  });
  check_launch();
}

}  // namespace saccade::cuda
