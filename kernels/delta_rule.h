#pragma once
#include "kernels/recurrence/state.h"

namespace saccade {

/// The delta rule (Yang et al. 2024, arXiv:2406.06484), gated when g is given (Gated DeltaNet, arXiv:2412.06464), head by head:
///   S̄ = e^{g_t} S_{t−1},   S_t = S̄ + k_t (β_t (v_t − S̄ᵀ k_t))ᵀ,   o_t = scale · S_tᵀ q_t
/// In bf16 (q, k, v, o) states, β and g are f32.
struct DeltaRule {
  Tensor q, k;              ///< [B, T, H, K]; keys of length 1 at most, or the state grows
  Tensor v;                 ///< [B, T, H, V]
  Tensor beta;              ///< [B, T, H] in (0, 1)
  Tensor g = {};            ///< [B, T, H] log decays ≤ 0; empty: no decay
  double scale = 1;         ///< the papers' K^−½
  CarriedState state = {};  ///< S [B, H, K, V]
};

struct DeltaRuleOutput {
  Tensor o;    ///< [B, T, H, V]
  Tensor end;  ///< S after the last token when asked for
};

DeltaRuleOutput delta_rule(Tape& tape, const DeltaRule& in);

/// Where each query read from: v_j's weight in o_t of one sequence, exact, by running the recurrence backward from w = scale q_t:
/// for i = t … 0: a_ti = β_i (k_i · w), w ← e^{g_i} (w − β_i k_i (k_i · w)). [H, T, T], zero above the diagonal. No gradient.
Tensor delta_rule_weights(Tape& tape, const DeltaRule& in, int64_t sequence);

}  // namespace saccade
