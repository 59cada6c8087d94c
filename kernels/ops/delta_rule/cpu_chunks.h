#pragma once
#include "kernels/ops/delta_rule/delta_rule.h"

namespace saccade::cpu {

/// The chunk form of the gated delta rule (arXiv:2412.06464, section 3.3), chunks of up to kDeltaChunk tokens. With G the running
/// sum of g inside a chunk, Γ_ij = e^{G_i − G_j} for j ≤ i, S the state at its start and N the part of (k kᵀ) ∘ Γ below the diagonal:
///   (I + diag(β) N) X = β ∘ (v − e^{G} ∘ (k S)),   o = scale (e^{G} ∘ (q S) + ((q kᵀ) ∘ Γ) X),   S' = e^{G_L} S + (k ∘ e^{G_L − G})ᵀ X
/// X by forward substitution: the inverse of the matrix has entries of at most 2, its powers grow without bound where keys resemble each
/// other.
constexpr int64_t kDeltaChunk = 32;

/// What the backward pass needs of the forward pass: X of every token [B, T, H, V] and the state at the start of every chunk
/// [B, H, chunks, K, V].
struct DeltaRecord {
  Tensor x, states;
};
Shape delta_states_shape(const DeltaRule& in);

/// o and end, or a record; each may be empty (`record.x` too).
template <class T>
void delta_rule_forward(const DeltaRule& in, const Tensor& o, const Tensor& end, const DeltaRecord& record);

/// Gradients, all overwritten; dg and d_start may be empty (not wanted), d_end too (zeros).
struct DeltaGradients {
  Tensor d_o, d_end;
  Tensor dq, dk, dv, d_beta, dg, d_start;
};
template <class T>
void delta_rule_backward(const DeltaRule& in, const DeltaRecord& record, const DeltaGradients& out);

}  // namespace saccade::cpu
