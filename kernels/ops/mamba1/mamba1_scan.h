#pragma once
#include <vector>

#include "kernels/ops/shared/carried_state.h"
#include "kernels/ops/shared/sequences.h"

namespace saccade {

/// The selective scan of Mamba (Gu and Dao 2023, arXiv:2312.00752, equation 2 and section 3.2, algorithm 2) with its gate (section 3.4),
/// channel by channel d and state by state n:
///   Δ_td = softplus(dt_td + bias_d),  A = −e^{A_log},  h_tdn = e^{Δ_td A_dn} h_{t−1,dn} + Δ_td B_tn u_td
///   y_td = (Σ_n C_tn h_tdn + D_d u_td) silu(z_td)
/// B̄ is Δ B, as in the public code, not the zero-order hold of equation 4. Ablations of the decay (arXiv:2505.18522, section 3.1.1; they
/// are not published as formulas): one factor per token, e^{−e^α softplus(s_t + b)}, or none; these run as linear attention in matrix
/// products. u, dt, z, B, C, s and y are of one dtype, the parameters and h of accumulation_dtype(u). Throws std::invalid_argument where a
/// shape differs from those below, or on CUDA for N above 1024 with a decay per channel and state. Dtypes are not checked.
struct Mamba1Scan {
  Tensor u, dt, z;          ///< [B, T, D]
  Tensor b, c;              ///< [B, T, N]
  Tensor skip, dt_bias;     ///< D and bias, [D]
  Tensor a_log = {};        ///< [D, N], or α [1] with `shared_dt`, or empty: no decay
  Tensor shared_dt = {};    ///< s [B, T] for one decay, else empty
  Tensor shared_bias = {};  ///< b [1] with it
  CarriedState state = {};  ///< h [B, D, N]
};

struct Mamba1Output {
  Tensor y;    ///< [B, T, D]
  Tensor end;  ///< h after the last token, [B, D, N], when asked for
};

Mamba1Output mamba1_scan(Tape& tape, const Mamba1Scan& in);

/// Backward pass: the gradients of the outputs, and where the inputs' gradients go (empty where none is wanted).
struct Mamba1Gradients {
  Tensor dy, d_end;
  GradTarget u, dt, z, b, c, skip, dt_bias, a_log, shared_dt, shared_bias;
  Tensor d_start;
};

/// Read weights, y_td / silu(z_td) = Σ_j a_tj u_jd from a zero state, of some sequences and channels, exact:
///   a_tj = Δ_jd Σ_n C_tn B_jn e^{A_dn Σ_{j<i≤t} Δ_id} (+ D_d for j = t)
/// [sequences · channels, T, T] of accumulation_dtype(u), zero above the diagonal. No gradient. Throws as mamba1_scan; `sequences` and
/// `channels` are not checked.
Tensor mamba1_weights(Tape& tape, const Mamba1Scan& in, const Sequences& sequences, const std::vector<int64_t>& channels);

}  // namespace saccade
