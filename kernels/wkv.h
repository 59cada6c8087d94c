#pragma once
#include "kernels/tape.h"

namespace saccade {

struct Wkv {
  Tensor y;      ///< [B, T, H, N]
  Tensor state;  ///< [B, H, N, N] after the last token, key index first
};

/// The WKV recurrence of RWKV-5 and RWKV-6 (Peng et al. 2024, arXiv:2404.05892, sections 3 and 4). Per head, with decay per
/// channel of the key e^λ, λ = −exp(w_raw):
///   y_t = (S_{t−1} + diag(bonus) k_t v_tᵀ)ᵀ r_t,   S_t = diag(e^{λ_t}) S_{t−1} + k_t v_tᵀ
/// The output reads the state before the update: the token itself enters through the bonus only.
/// r, k, v [B, T, H, N]   w_raw [H, N] (RWKV-5: constant) or [B, T, H, N] (RWKV-6)   bonus [H, N]
/// start [B, H, N, N]: the state before the first token, zeros when empty
/// w_raw above 8 counts as 8: such a decay is 0 already, and e^w_raw must not become infinite.
Wkv wkv(Tape& tape, const Tensor& r, const Tensor& k, const Tensor& v, const Tensor& w_raw, const Tensor& bonus, const Tensor& start = {});

/// Where each output reads from: y_t = Σ_j a_tj v_j (from a zero state), a_tj = Σ_c r_tc k_jc Π_{j<i<t} e^{λ_ic}, a_tt = Σ_c r_tc bonus_c
/// k_tc. Of one sequence, [H, T, T], zero above the diagonal; signed. No gradient.
Tensor wkv_weights(Tape& tape, const Tensor& r, const Tensor& k, const Tensor& w_raw, const Tensor& bonus, int64_t sequence);

}  // namespace saccade
