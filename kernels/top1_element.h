#pragma once
#include "kernels/attention.h"

namespace saccade {

struct Top1Element {
  Tensor o;         ///< [B, T, H, d] v of the selected position
  Tensor selected;  ///< i32 [B, H, T] argmax_j s_tj, ties to the smaller j
  Tensor lse;       ///< [B, H, T] of the soft distribution
  Tensor entropy;   ///< [B, H, T] of the soft distribution; empty unless asked for
};

/// Top-1 Element Selection (BC 4, specification 2): o_t = v_{a(t)}, straight-through gradient.
/// q, k, v [B, T, H, d]. Backward: dV_j = Σ_{t: a(t)=j} dO_t, dS = P ∘ (dP − rowsum(P ∘ dP)) with dP_tj = dO_t · v_j.
Top1Element top1_element(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& options,
                         bool want_entropy = false);

}  // namespace saccade
