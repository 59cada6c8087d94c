#pragma once
#include "kernels/ops/shared/carried_state.h"
#include "kernels/ops/shared/sequences.h"

namespace saccade {

/// The delta rule (Yang et al. 2024, arXiv:2406.06484, section 2.2), with decay α_t = e^{g_t} where g is given (Gated DeltaNet,
/// arXiv:2412.06464, section 3.1, equation 10), head by head, S transposed against the papers:
///   S̄ = e^{g_t} S_{t−1},   S_t = S̄ + k_t (β_t (v_t − S̄ᵀ k_t))ᵀ,   o_t = scale · S_tᵀ q_t
/// q, k, v and o are of one dtype, β, g and the states of accumulation_dtype(v).
/// Throws std::invalid_argument where a shape differs from those below or state.start has another dtype; on CUDA without the chunk form
/// also for K above 256. Other dtypes are not checked.
struct DeltaRule {
  Tensor q, k;              ///< [B, T, H, K]; keys of length 1 at most, or the state grows
  Tensor v;                 ///< [B, T, H, V]
  Tensor beta;              ///< [B, T, H] in (0, 2)
  Tensor g = {};            ///< [B, T, H] log decays ≤ 0; empty: no decay
  double scale = 1;         ///< the papers' K^−½
  CarriedState state = {};  ///< S [B, H, K, V]
};

struct DeltaRuleOutput {
  Tensor o;    ///< [B, T, H, V]
  Tensor end;  ///< S after the last token, [B, H, K, V], when asked for
};

DeltaRuleOutput delta_rule(Tape& tape, const DeltaRule& in);

/// Read weights, o_t = Σ_j a_tj v_j from a zero state, of some sequences, exact: the recurrence run backward from w = scale q_t,
///   a_ti = β_i (k_i · w),   w ← e^{g_i} (w − k_i a_ti)   for i = t … 0
/// [sequences · H, T, T] of accumulation_dtype(v), zero above the diagonal. No gradient. Throws as delta_rule; `sequences` are not checked.
Tensor delta_rule_weights(Tape& tape, const DeltaRule& in, const Sequences& sequences);

}  // namespace saccade
