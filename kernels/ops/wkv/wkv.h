#pragma once
#include "kernels/engine/tape.h"
#include "kernels/ops/shared/sequences.h"

namespace saccade {

struct Wkv {
  Tensor y;      ///< [B, T, H, N] of r's dtype
  Tensor state;  ///< [B, H, N, N] after the last token, key index first, of accumulation_dtype(r)
};

/// The WKV recurrence of RWKV-5 and RWKV-6 (Peng et al. 2024, arXiv:2404.05892, sections 4.1.2 and 4.2.2, equations 18, 21 and 22). Per
/// head, with a decay e^λ per channel of the key, λ = −exp(w_raw), and the bonus u:
///   y_t = (S_{t−1} + diag(u) k_t v_tᵀ)ᵀ r_t,   S_t = diag(e^{λ_t}) S_{t−1} + k_t v_tᵀ
/// The output reads the state before the update: the token itself enters through the bonus only.
/// r, k, v [B, T, H, N] of one dtype   w_raw [H, N] (RWKV-5: constant) of accumulation_dtype(r), or [B, T, H, N] (RWKV-6) of r's dtype
/// bonus u [H, N] and start [B, H, N, N], the state before the first token, zeros when empty, of accumulation_dtype(r)
/// w_raw above 8 counts as 8: such a decay is 0 already, and e^w_raw must not become infinite.
/// Throws std::invalid_argument where a shape differs from these, r, k, v have several dtypes, or on CUDA for N above 256.
Wkv wkv(Tape& tape, const Tensor& r, const Tensor& k, const Tensor& v, const Tensor& w_raw, const Tensor& bonus, const Tensor& start = {});

/// Read weights, y_t = Σ_j a_tj v_j from a zero state, of some sequences: a_tj = Σ_c r_tc k_jc Π_{j<i<t} e^{λ_ic}, a_tt = Σ_c r_tc u_c
/// k_tc. [sequences · H, T, T] of accumulation_dtype(r), zero above the diagonal; signed. No gradient. Throws as wkv, and
/// std::invalid_argument for sequences that are not there.
Tensor wkv_weights(Tape& tape, const Tensor& r, const Tensor& k, const Tensor& w_raw, const Tensor& bonus, const Sequences& sequences);

}  // namespace saccade
