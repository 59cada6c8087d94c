#pragma once
#include "kernels/tape.h"

namespace saccade {

struct Wkv7 {
  Tensor y;      ///< [B, T, H, N]
  Tensor state;  ///< [B, H, N, N] after the last token, key index first
};

/// The recurrence of RWKV-7 (Peng et al. 2025, arXiv:2503.14456, section 3), a generalised delta rule. Per head:
///   S_t = diag(e^{log_w_t}) S_{t−1} + b_t (S_{t−1}ᵀ a_t)ᵀ + k_t v_tᵀ,   y_t = S_tᵀ r_t
/// The output reads the state after the update. Everything [B, T, H, N]; start [B, H, N, N], zeros when empty.
/// In bf16 states and log_w are f32, and log_w ≥ −2.5: RWKV-7's own are above −0.61, and the chunk form on CUDA lives on that.
Wkv7 wkv7(Tape& tape, const Tensor& r, const Tensor& log_w, const Tensor& k, const Tensor& v, const Tensor& a, const Tensor& b,
          const Tensor& start = {});

/// Where each output reads from: y_t = Σ_j a_tj v_j (from a zero state), with p = r_t and for j = t, t−1, …:
///   a_tj = p · k_j,   p ← e^{log_w_j} ∘ p + a_j (b_j · p)
/// Of one sequence, [H, T, T], zero above the diagonal; signed. No gradient.
Tensor wkv7_weights(Tape& tape, const Tensor& r, const Tensor& log_w, const Tensor& k, const Tensor& a, const Tensor& b, int64_t sequence);

}  // namespace saccade
