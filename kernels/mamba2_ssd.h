#pragma once
#include "kernels/recurrence/state.h"

namespace saccade {

/// The recurrence of Mamba-2 (Dao and Gu 2024, arXiv:2405.21060, section 6), head by head:
///   Δ_t = softplus(dt_t + bias),  g_t = −e^{A_log} Δ_t,  S_t = e^{g_t} S_{t−1} + B_t (Δ_t x_t)ᵀ,  y_t = S_tᵀ C_t + D x_t
/// Ablations of the decay (arXiv:2505.18522, section 3): one for all heads, g_t = −e^{α} softplus(s_t + b); none, g = 0.
struct Mamba2Ssd {
  Tensor x;                 ///< [B, T, H, P]
  Tensor dt;                ///< [B, T, H]
  Tensor b, c;              ///< [B, T, G, N]; head h reads group ⌊h G / H⌋
  Tensor skip, dt_bias;     ///< D and bias, [H]
  Tensor a_log = {};        ///< [H], or α [1] with `shared_dt`, or empty: no decay
  Tensor shared_dt = {};    ///< s [B, T] for one decay, else empty
  Tensor shared_bias = {};  ///< b [1] with it
  CarriedState state = {};  ///< S [B, H, N, P]
};

struct Mamba2Output {
  Tensor y;    ///< [B, T, H, P]
  Tensor end;  ///< S after the last token when asked for
};

Mamba2Output mamba2_ssd(Tape& tape, const Mamba2Ssd& in);

/// Where each query read from: x_j's weight in y_t of one sequence, exact, a_tj = (C_t · B_j) Δ_j e^{Σ_{j<i≤t} g_i} (+ D for
/// j = t). [H, T, T], zero above the diagonal. No gradient.
Tensor mamba2_weights(Tape& tape, const Mamba2Ssd& in, int64_t sequence);

}  // namespace saccade
