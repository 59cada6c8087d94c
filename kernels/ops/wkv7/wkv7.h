#pragma once
#include "kernels/engine/tape.h"
#include "kernels/ops/shared/sequences.h"

namespace saccade {

struct Wkv7 {
  Tensor y;      ///< [B, T, H, N] of r's dtype
  Tensor state;  ///< [B, H, N, N] after the last token, key index first, of accumulation_dtype(r)
};

/// The WKV recurrence of RWKV-7 (Peng et al. 2025, arXiv:2503.14456, section 4.1, equation 17 with a = −κ̂ and b = κ̂ ∘ a_t; S transposed
/// against the paper), a generalised delta rule. Per head:
///   S_t = diag(e^{log_w_t}) S_{t−1} + b_t (S_{t−1}ᵀ a_t)ᵀ + k_t v_tᵀ,   y_t = S_tᵀ r_t
/// The output reads the state after the update. r, k, v, a, b [B, T, H, N] of one dtype   log_w [B, T, H, N] and start [B, H, N, N], zeros
/// when empty, of accumulation_dtype(r). In bf16 log_w must be ≥ −2.5, which the chunk form on CUDA relies on; RWKV-7's own are above
/// −0.61. Throws std::invalid_argument where a shape or a dtype other than that of log_w differs from these, or on CUDA without the chunk
/// form for N above 256.
Wkv7 wkv7(Tape& tape, const Tensor& r, const Tensor& log_w, const Tensor& k, const Tensor& v, const Tensor& a, const Tensor& b,
          const Tensor& start = {});

/// Read weights, y_t = Σ_j a_tj v_j from a zero state, of some sequences, with p = r_t and for j = t, t−1, …:
///   a_tj = p · k_j,   p ← e^{log_w_j} ∘ p + a_j (b_j · p)
/// [sequences · H, T, T] of accumulation_dtype(r), zero above the diagonal; signed. No gradient. Throws as wkv7, and
/// std::invalid_argument for sequences that are not there.
Tensor wkv7_weights(Tape& tape, const Tensor& r, const Tensor& log_w, const Tensor& k, const Tensor& a, const Tensor& b,
                    const Sequences& sequences);

}  // namespace saccade
