#include "kernels/ops/delta_rule/delta_rule_cuda.h"

#include "kernels/cuda/recurrence/rank_one_recurrence.cuh"

namespace saccade::cuda {
namespace {

struct DeltaSource {
  Elements q, k, beta, g;
  float scale;

  struct Token {
    float beta, decay;
  };
  __device__ __forceinline__ Token token(int64_t row) const { return {beta[row], g ? expf(g[row]) : 1.0f}; }
  __device__ __forceinline__ void fill(const Token& t, int64_t at, float& r, float& w, float& a, float& b, float& write) const {
    r = scale * q[at];
    w = t.decay;
    a = k[at];
    b = -t.beta * t.decay * a;
    write = t.beta * a;
  }
};
DeltaSource source(const DeltaRule& in) {
  return {elements(in.q), elements(in.k), elements(in.beta), elements(in.g), static_cast<float>(in.scale)};
}

/// A warp per token and head: gradients of r, log w, a, b and the write key, summed over the groups of columns, become those of q, k, β, g.
__global__ void __launch_bounds__(256)
    delta_targets_kernel(RankOneSizes n, DeltaSource source, const float* parts, int groups, ElementsTarget dq, ElementsTarget dk,
                         ElementsTarget d_beta, ElementsTarget dg) {
  const int64_t row = int64_t{blockIdx.x} * 8 + threadIdx.x / 32;
  if (row >= n.rows) return;
  const DeltaSource::Token token = source.token(row);
  float to_beta = 0, to_decay = 0;
  for (int c = threadIdx.x % 32; c < n.keys; c += 32) {
    float d[RankOneShape::kVectors] = {};
    for (int group = 0; group < groups; ++group)
#pragma unroll
      for (int i = 0; i < RankOneShape::kVectors; ++i) d[i] += parts[((group * n.rows + row) * RankOneShape::kVectors + i) * n.keys + c];
    const auto [dr, d_log_w, da, db, d_write] = d;
    const int64_t at = row * n.keys + c;
    const float k = source.k[at];
    dq.put(at, source.scale * dr);
    dk.put(at, da - token.beta * token.decay * db + token.beta * d_write);
    to_beta += k * (d_write - token.decay * db);
    to_decay += d_log_w - token.beta * token.decay * k * db;
  }
  to_beta = warp_sum(to_beta), to_decay = warp_sum(to_decay);
  if (threadIdx.x % 32 != 0) return;
  d_beta.put(row, to_beta);
  dg.put(row, to_decay);
}

}  // namespace

void delta_rule_forward(Stream stream, const DeltaRule& in, const Tensor& o, const Tensor& end) {
  rank_one_forward(stream, "delta_rule", delta_shape(in), source(in), in.v, in.state.start, o, end);
}

void delta_rule_backward(Stream stream, const DeltaRule& in, const DeltaTargets& out, const RankOneScratch& scratch) {
  const RankOneShape shape = delta_shape(in);
  const RankOneBackward p(in.v, out.d_o, in.state.start, out.d_end, out.dv, out.d_start, scratch);
  rank_one_backward(stream, "delta_rule", shape, source(in), p);
  delta_targets_kernel<<<blocks_for(shape.rows(), 8), 256, 0, stream>>>(RankOneSizes(shape), source(in), p.parts,
                                                                        static_cast<int>(shape.groups()), elements(out.dq),
                                                                        elements(out.dk), elements(out.d_beta), elements(out.dg));
  check_launch();
}

void delta_rule_weights(Stream stream, const DeltaRule& in, const Sequences& sequences, const Tensor& weights) {
  rank_one_weights(stream, "delta_rule_weights", delta_shape(in), source(in), sequences, weights);
}

}  // namespace saccade::cuda
