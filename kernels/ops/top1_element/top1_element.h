#pragma once
#include "kernels/ops/attention/attention.h"
#include "kernels/ops/shared/forced_choice.h"

namespace saccade {

struct Top1Element {
  Tensor o;         ///< [B, T, H, d] of v's dtype: v of the selected position
  Tensor selected;  ///< i32 [B, H, T] a(t) = argmax_j s_tj, ties to the smaller j
  Tensor lse;       ///< [B, H, T] of the soft distribution P, of accumulation_dtype(v)
  Tensor entropy;   ///< [B, H, T] of P, dtype as lse; empty unless asked for
};

/// Top-1 Element Selection (arXiv:2505.18522, section 4.1) with the straight-through gradient (arXiv:1308.3432) of P = softmax(s), s as in
/// ScoreOptions:
///   o_t = v_{a(t)};   backward: dV_j = Σ_{t: a(t)=j} dO_t,   dS = P ∘ (dP − rowsum(P ∘ dP)),   dP_tj = dO_t · v_j
/// q, k, v [B, T, H, d] of one dtype; q or k may be [1, T, H, d], shared by all sequences.
/// `forced`: a(t) of one query, a position that it sees. Throws UsageError where a shape or dtype differs from these, window < 0 or the
/// forced query or position is not there; DeviceError on CUDA for d above 256 or a forced choice.
Top1Element top1_element(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& options,
                         bool want_entropy = false, const ForcedChoice& forced = {});

}  // namespace saccade
