#include "kernels/ops/wkv7/wkv7_cuda.h"

#include "kernels/cuda/recurrence/rank_one_recurrence.cuh"

namespace saccade::cuda {
namespace {

struct Wkv7Source {
  Elements receptance, log_w, key, removal, replacement;

  struct Token {};
  __device__ __forceinline__ Token token(int64_t) const { return {}; }
  __device__ __forceinline__ void fill(const Token&, int64_t at, float& r, float& w, float& a, float& b, float& k) const {
    r = receptance[at];
    w = expf(log_w[at]);
    a = removal[at];
    b = replacement[at];
    k = key[at];
  }
};
Wkv7Source source(const cpu::Wkv7Inputs& in) {
  return {elements(in.r), elements(in.log_w), elements(in.k), elements(in.a), elements(in.b)};
}

/// A thread per token, head and channel: sums over the groups of columns.
__global__ void __launch_bounds__(256)
    wkv7_targets_kernel(int64_t size, int keys, const float* parts, int groups, ElementsTarget dr, ElementsTarget d_log_w,
                        ElementsTarget da, ElementsTarget db, ElementsTarget dk) {
  const int64_t at = int64_t{blockIdx.x} * 256 + threadIdx.x;
  if (at >= size) return;
  float d[RankOneShape::kVectors] = {};
  for (int group = 0; group < groups; ++group)
#pragma unroll
    for (int i = 0; i < RankOneShape::kVectors; ++i)
      d[i] += parts[group * size * RankOneShape::kVectors + (at / keys * RankOneShape::kVectors + i) * keys + at % keys];
  dr.put(at, d[0]), d_log_w.put(at, d[1]), da.put(at, d[2]), db.put(at, d[3]), dk.put(at, d[4]);
}

}  // namespace

void wkv7_forward(Stream stream, const cpu::Wkv7Inputs& in, const Tensor& y, const Tensor& state) {
  rank_one_forward(stream, "wkv7", wkv7_shape(in), source(in), in.v, in.start, y, state);
}

void wkv7_backward(Stream stream, const cpu::Wkv7Inputs& in, const cpu::Wkv7Gradients& out, const RankOneScratch& scratch) {
  const RankOneShape shape = wkv7_shape(in);
  const RankOneBackward p(in.v, out.dy, in.start, out.d_state, out.dv, out.d_start, scratch);
  rank_one_backward(stream, "wkv7", shape, source(in), p);
  const int64_t size = shape.rows() * shape.keys;
  wkv7_targets_kernel<<<blocks_for(size, 256), 256, 0, stream>>>(size, static_cast<int>(shape.keys), p.parts,
                                                                 static_cast<int>(shape.groups()), elements(out.dr), elements(out.d_log_w),
                                                                 elements(out.da), elements(out.db), elements(out.dk));
  check_launch();
}

void wkv7_weights(Stream stream, const cpu::Wkv7Inputs& in, const Sequences& sequences, const Tensor& weights) {
  rank_one_weights(stream, "wkv7_weights", wkv7_shape(in), source(in), sequences, weights);
}

}  // namespace saccade::cuda
