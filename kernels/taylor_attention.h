#pragma once
#include "kernels/tape.h"

namespace saccade {

/// Tokens of a segment. With d 16 and V 64 pairs take (segment + 1) (d + V) FLOP a token, the state 4 F (V + 1) = 40 k of slower products,
/// which cost as much as all pairs of about 6000 tokens: sequences are whole or cut short.
constexpr int64_t taylor_segment(int64_t length) { return length <= 4096 ? 4096 : 512; }

/// Based's linear attention (Arora et al. 2024, arXiv:2402.18668, section 4): the exponential's Taylor series of second order,
///   s_tj = q_t · k_j / √d,   p = 1 + s + s²/2,   o_t = Σ_{j≤t} p_tj v_j / (Σ_{j≤t} p_tj + ε),   ε = 1e-12
/// which is linear attention with the features φ(x) = [1, x d^{−1/4}, products x_i x_j], φ(q) · φ(k) = p.
/// q, k [B, T, H, d]   v, o [B, T, H, V]
/// GPUs take d = 16 with V = 32 or 64 in segments of `segment` tokens (a multiple of 128; 0: taylor_segment(T)): all pairs inside, a state
/// between them. `state` (decoding; else empty): Σ_j φ(k_j) [v_j | 1] of the tokens before, [B, H, F, V + 1]; moved on in place, no
/// gradient.
Tensor taylor_attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& state = {}, int64_t segment = 0);

/// F = 1 + d + d (d + 1) / 2: products of different elements stand once.
int64_t taylor_features(int64_t d);

/// p_tj over its row's sum, of one sequence: where each query read from. [H, T, T], zero above the diagonal. No gradient.
Tensor taylor_weights(Tape& tape, const Tensor& q, const Tensor& k, int64_t sequence);

}  // namespace saccade
