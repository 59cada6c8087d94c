#pragma once
#include "kernels/engine/tape.h"

namespace saccade {

/// Weight preparation of RWKV-7 (Peng et al. 2025, arXiv:2503.14456, section 4.1, equations 4, 7, 12 and 17):
///   log_w = −e^{−1/2} σ(d),   η = σ(rate_raw),   k̃ = k ∘ (1 + (η − 1) ∘ k_a),   a = −κ̂,   b = κ̂ ∘ η
/// η is the paper's in-context learning rate a_t, k_a its α, kappa the unit removal keys κ̂ of equation 15, made from k before this change.
/// d, rate_raw, k, kappa and the outputs [B, T, C] of one dtype, but log_w of accumulation_dtype(d); k_a [C] of that, too
/// Throws std::invalid_argument where a shape or the dtype of an input other than k_a differs from these.
struct Rwkv7Gates {
  Tensor log_w, k, a, b;
};
Rwkv7Gates rwkv7_gates(Tape& tape, const Tensor& d, const Tensor& rate_raw, const Tensor& k, const Tensor& kappa, const Tensor& k_a);

/// Bonus and gate behind the recurrence (arXiv:2503.14456, equations 20 to 22 before W_o; r_k is the paper's ρ), sums head by head:
///   out = (y + (Σ_n r_n k_n r_k,n) v) ∘ g
/// y (after its norm), r, k, v, g, out [B, T, C] of one dtype   r_k [H, N], H N = C, of accumulation_dtype(y)
/// Throws std::invalid_argument where a shape or the dtype of an input other than r_k differs from these; DeviceError on CUDA for N above
/// 4096.
Tensor rwkv7_output(Tape& tape, const Tensor& y, const Tensor& r, const Tensor& k, const Tensor& v, const Tensor& g, const Tensor& r_k);

/// Value residual (arXiv:2503.14456, equations 8 and 10, whose ν is 1 − σ(raw), as in the public code): v' = v + (first − v) ∘ σ(raw),
/// `first` the values of layer 0. All of one shape and dtype. Throws std::invalid_argument where they are not.
Tensor blend_values(Tape& tape, const Tensor& v, const Tensor& first, const Tensor& raw);

}  // namespace saccade
