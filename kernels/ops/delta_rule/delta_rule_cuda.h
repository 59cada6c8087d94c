#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/ops/delta_rule/delta_rule.h"
#include "kernels/ops/shared/rank_one_recurrence_cuda.h"

namespace saccade::cuda {

/// As a rank-one recurrence: r = scale q, w = e^g, a = k, b = −β e^g k, and β k where that has k.
inline RankOneShape delta_shape(const DeltaRule& in) { return {in.q.dim(0), in.q.dim(1), in.q.dim(2), in.q.dim(3), in.v.dim(3)}; }

/// q, k, v, o f32 or bf16; β, g f32 or bf16; states f32. `end` may be empty, and may be in.state.start.
void delta_rule_forward(Stream stream, const DeltaRule& in, const Tensor& o, const Tensor& end);

struct DeltaTargets {
  Tensor d_o, d_end;  ///< d_end may be empty: zeros
  GradTarget dq, dk, dv, d_beta, dg, d_start;
};
void delta_rule_backward(Stream stream, const DeltaRule& in, const DeltaTargets& out, const RankOneScratch& scratch);

/// Read weights of some sequences, f32 [sequences · H, T, T].
void delta_rule_weights(Stream stream, const DeltaRule& in, const Sequences& sequences, const Tensor& weights);

}  // namespace saccade::cuda
