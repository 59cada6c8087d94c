#pragma once
#include "kernels/ops/shared/carried_state.h"
#include "kernels/ops/shared/sequences.h"

namespace saccade {

/// State space duality, the recurrence of Mamba-2 (Dao and Gu 2024, arXiv:2405.21060; definition: section 5.1, chunks: section 6), head by
/// head:
///   Δ_t = softplus(dt_t + bias),  g_t = −e^{A_log} Δ_t,  S_t = e^{g_t} S_{t−1} + B_t (Δ_t x_t)ᵀ,  y_t = S_tᵀ C_t + D x_t
/// Ablations of the decay (arXiv:2505.18522, section 3.1.1; they are not published as formulas): one for all heads,
/// g_t = −e^α softplus(s_t + b); none, g = 0.
/// x, dt, B, C, s and y are of one dtype, the parameters and S of accumulation_dtype(x).
/// Throws std::invalid_argument where a shape differs from those below or G does not divide H. Dtypes are not checked.
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
  Tensor end;  ///< S after the last token, [B, H, N, P], when asked for
};

Mamba2Output mamba2_ssd(Tape& tape, const Mamba2Ssd& in);

/// Read weights, y_t = Σ_j a_tj x_j from a zero state, of some sequences, exact: a_tj = (C_t · B_j) Δ_j e^{Σ_{j<i≤t} g_i} (+ D for j = t).
/// [sequences · H, T, T] of accumulation_dtype(x), zero above the diagonal. No gradient. Throws as mamba2_ssd; `sequences` are not checked.
Tensor mamba2_weights(Tape& tape, const Mamba2Ssd& in, const Sequences& sequences);

}  // namespace saccade
