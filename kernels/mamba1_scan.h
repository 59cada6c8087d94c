#pragma once
#include <vector>

#include "kernels/recurrence/state.h"

namespace saccade {

/// The selective scan of Mamba (Gu and Dao 2023, arXiv:2312.00752, section 3), channel by channel d and state by state n:
///   Δ_td = softplus(dt_td + bias_d),  A = −e^{A_log},  h_t = e^{Δ_td A_dn} h_{t−1} + Δ_td B_tn u_td
///   y_td = (Σ_n C_tn h_t + D_d u_td) silu(z_td)
/// B is not discretised exactly but by Δ B, as in the published code. Ablations of the decay (arXiv:2505.18522, section 3.1): one
/// factor a token, e^{−e^α softplus(s_t + b)}, or none; these are taken as linear attention in matrix products.
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
  Tensor end;  ///< h after the last token when asked for
};

Mamba1Output mamba1_scan(Tape& tape, const Mamba1Scan& in);

/// Its way back: what has arrived for the outputs, and where the inputs' gradients go (nowhere where none is wanted).
struct Mamba1Gradients {
  Tensor dy, d_end;
  GradTarget u, dt, z, b, c, skip, dt_bias, a_log, shared_dt, shared_bias;
  Tensor d_start;
};

/// Where each query read from, of one sequence and some channels: u_jd's weight in y_td / silu(z_td), exact,
///   a_tj = Δ_jd Σ_n C_tn B_jn e^{A_dn Σ_{j<i≤t} Δ_id} (+ D_d for j = t)
/// [channels, T, T], zero above the diagonal. No gradient.
Tensor mamba1_weights(Tape& tape, const Mamba1Scan& in, int64_t sequence, const std::vector<int64_t>& channels);

}  // namespace saccade
