#pragma once
#include "kernels/tape.h"

namespace saccade {

/// What stands in front of RWKV-7's recurrence (arXiv:2503.14456, section 3; specification 6.1). Everything [B, T, C], log_w f32 also
/// where the others are bf16:
///   log_w = −e^{−1/2} σ(d),   η = σ(rate_raw),   k' = k ∘ (1 + (η − 1) ∘ k_a),   a = −κ,   b = κ ∘ η
struct Rwkv7Gates {
  Tensor log_w, k, a, b;
};
/// κ: the unit removal keys, made from k before this change.   k_a [C]
Rwkv7Gates rwkv7_gates(Tape& tape, const Tensor& d, const Tensor& rate_raw, const Tensor& k, const Tensor& kappa, const Tensor& k_a);

/// What stands behind it: out = (y + (Σ_head r ∘ k ∘ r_k) v) ∘ g.      y (normed), r, k, v, g [B, T, C]   r_k [H, N]
Tensor rwkv7_output(Tape& tape, const Tensor& y, const Tensor& r, const Tensor& k, const Tensor& v, const Tensor& g, const Tensor& r_k);

/// Value residual: v + (first − v) ∘ σ(raw), equal shapes. `first`: the values of layer 0.
Tensor blend_values(Tape& tape, const Tensor& v, const Tensor& first, const Tensor& raw);

}  // namespace saccade
