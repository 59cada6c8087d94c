#pragma once
#include "kernels/engine/tape.h"
#include "kernels/ops/shared/sequences.h"

namespace saccade {

/// Tokens in a segment; the last segment may be shorter. With d 16 and V 64 pairs take (segment + 1) (d + V) FLOP per token, the state
/// 4 F (V + 1) = 40 k of slower products, which cost as much as all pairs of about 6000 tokens. So short sequences are one segment, and
/// long ones have short segments.
constexpr int64_t taylor_segment(int64_t length) { return length <= 4096 ? 4096 : 512; }
/// The same behind a carried state, which every token has to be added to and read from in any case: only the pairs are left to save.
constexpr int64_t kTaylorCarriedSegment = 512;

/// Linear attention of Based (Arora et al. 2024, arXiv:2402.18668, section 4; ε of the public code): the exponential's Taylor series of
/// second order,
///   s_tj = q_t · k_j / √d,   p = 1 + s + s²/2,   o_t = Σ_{j≤t} p_tj v_j / (Σ_{j≤t} p_tj + ε),   ε = 1e-12
/// which is linear attention with the features φ(x) = [1, x d^{−1/4}, products x_i x_j], φ(q) · φ(k) = p.
/// q, k [B, T, H, d]   v, o [B, T, H, V]   all of one dtype
/// GPUs take d = 16 with V = 32 or 64 in segments of `segment` tokens (a multiple of 128; 0: taylor_segment(T), with a state
/// kTaylorCarriedSegment): all pairs inside a segment, a state between segments. `state` (decoding; else empty): Σ_j φ(k_j) [v_j | 1] of
/// the tokens before, [B, H, F, V + 1] of accumulation_dtype(v), updated in place; no gradient. GPUs take up to 32 tokens behind a state,
/// and other d and V, token by token.
/// Throws std::invalid_argument where a shape differs from these or segment is negative or no multiple of 128. Dtypes are not checked.
Tensor taylor_attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& state = {}, int64_t segment = 0);

/// F = 1 + d + d (d + 1) / 2: products of different elements stand once.
int64_t taylor_features(int64_t d);

/// Read weights p_tj / (Σ_{i≤t} p_ti + ε) of some sequences: [sequences · H, T, T] of accumulation_dtype(q), zero above the diagonal. No
/// gradient. Checks nothing.
Tensor taylor_weights(Tape& tape, const Tensor& q, const Tensor& k, const Sequences& sequences);

}  // namespace saccade
