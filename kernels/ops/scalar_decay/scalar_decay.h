#pragma once
#include "kernels/engine/tape.h"

namespace saccade::cpu {

/// Linear attention whose state decays by one factor per token and head (state space duality, arXiv:2405.21060, section 6):
///   S_t = e^{g_t} S_{t−1} + k_t v_tᵀ      o_t = S_tᵀ q_t
/// in chunks of up to kChunk tokens. With G the running sum of g inside a chunk, Γ_ij = e^{G_i − G_j} for j ≤ i and S the state
/// at its start:
///   o = ((q kᵀ) ∘ Γ) v + e^{G} ∘ (q S),   S' = e^{G_L} S + (k ∘ e^{G_L − G})ᵀ v
/// Heads that share q and k (a group) share the products. Chunks depend on each other through the state only.
struct ScalarDecay {
  static constexpr int64_t kChunk = 64;

  Tensor q, k;   ///< [B, T, G, N]; head h reads group ⌊h G / H⌋
  Tensor v;      ///< [B, T, H, P]
  Tensor g;      ///< [B, T, H] log decays ≤ 0, or [B, T, 1] the same for all heads, or empty: no decay
  Tensor start;  ///< [B, H, N, P] or empty: zeros

  /// Shape of the workspace that holds the state at the start of every chunk and at the end: [B, chunks + 1, G, N, H P / G].
  Shape states_shape() const;
  /// FLOPs of one pass forward.
  double flops() const;
};

/// Fills `states`, and o [B, T, H, P] unless it is empty.
template <class T>
void scalar_decay(const ScalarDecay& in, const Tensor& states, const Tensor& o);

/// The state after the last token, [B, H, N, P].
template <class T>
void scalar_decay_end(const ScalarDecay& in, const Tensor& states, const Tensor& end);

/// Gradients, with `states` as scalar_decay filled it; d_states is workspace of the same shape. dv, dg and d_start are overwritten (dg,
/// d_start may be empty: not wanted); dq and dk may be empty targets. d_end may be empty: zeros. A decay that all heads share gets one
/// gradient per group, to be summed: dg [B, T, G].
struct ScalarDecayGradients {
  Tensor d_o, d_end, d_states;
  GradTarget dq, dk;
  Tensor dv, dg, d_start;
};
template <class T>
void scalar_decay_backward(const ScalarDecay& in, const Tensor& states, const ScalarDecayGradients& out);

}  // namespace saccade::cpu
