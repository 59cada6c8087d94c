#pragma once
#include "kernels/engine/cuda_limits.h"
#include "kernels/engine/plain.h"
#include "kernels/ops/delta_rule/delta_rule_cuda.h"
#include "kernels/ops/shared/chunk_states_cuda.h"

namespace saccade::cuda {

constexpr int64_t kDeltaChunkShared = 163 << 10;  ///< most bytes of shared memory of a kernel of the chunk form

/// Whether it has a kernel for these keys and values.
inline bool delta_chunk_sizes(const DeltaRule& in) {
  const int64_t keys = in.q.dim(3);
  return (keys == 32 || keys == 64 || keys == 96) && in.v.dim(3) % 32 == 0;
}

/// The chunk form of the delta rule on tensor cores, in bf16 (arXiv:2412.06464, section 3.3), chunks of 64. With G the
/// running sum of g inside a chunk, Γ_ij = e^{G_i − G_j} for j ≤ i, N what lies below the diagonal of (k kᵀ) ∘ Γ, and
/// T = (I + diag(β) N)⁻¹ diag(β):
///   X = T (v − e^G ∘ (k S)),   o = scale e^G ∘ (q S) + P X with P = scale (q kᵀ) ∘ Γ,   S' = e^{G_L} S + (k ∘ e^{G_L − G})ᵀ X
/// All but the sequential pass over states runs over all chunks in parallel: S' = e^{G_L} S + M S + L with M = −(k ∘ e^{G_L − G})ᵀ T (e^G ∘
/// k) and L = (k ∘ e^{G_L − G})ᵀ T v (chunk_states.h). Likewise backward, with Y' = Tᵀ dX = dv:
///   dX = Pᵀ dO + e^{G_L − G} ∘ (k dS'),   dS = e^{G_L} dS' + scale (e^G ∘ q)ᵀ dO − (e^G ∘ k)ᵀ Y'
/// Padding tokens at the end of a chunk are zero, with log decay zero.
/// The plain form runs instead on GPUs with less shared memory per block.
inline bool has_delta_chunks(const DeltaRule& in) {
  return tensor_core_type(in.v.dtype()) && in.q.dim(1) >= kChunkTokens / 2 && delta_chunk_sizes(in) &&
         kDeltaChunkShared <= shared_memory_per_block();
}

/// Saved for backward, and workspace of the backward pass.
struct DeltaChunks {
  ChunkStates states, gradients;  ///< they share all but the states
  Tensor solve, solve_decayed;    ///< T and T diag(e^G), bf16 [B H, chunks, 64, 64]; the same without g
  Tensor x;                       ///< X bf16 [B, T, H, V]
  Tensor dv;                      ///< Y', where dv is added to or not wanted

  DeltaChunks() = default;
  DeltaChunks(Tape& t, const DeltaRule& in) {
    const int64_t batch_heads = in.q.dim(0) * in.q.dim(2), chunks = (in.q.dim(1) + kChunkTokens - 1) / kChunkTokens;
    const Shape square{batch_heads, chunks, kChunkTokens, kChunkTokens};
    states = {t.empty({batch_heads, chunks, in.q.dim(3), in.q.dim(3)}, DType::bf16), t.empty({batch_heads, chunks, 1}, DType::f32),
              t.empty({batch_heads, chunks + 1, in.q.dim(3), in.v.dim(3)}, DType::bf16),
              chunk_states_carried(t, batch_heads, chunks, in.q.dim(3), in.v.dim(3))};
    solve = t.empty(square, DType::bf16);
    solve_decayed = in.g ? t.empty(square, DType::bf16) : solve;
  }
  DeltaChunks for_backward(Tape& t, const DeltaRule& in, const GradTarget& d_values) const {
    DeltaChunks all = *this;
    all.gradients = {states.transition, states.last, t.empty(states.states.shape(), DType::bf16), states.carried};
    all.x = t.empty(in.v.shape(), DType::bf16);
    all.dv = d_values && !d_values.add ? d_values.tensor : t.empty(in.v.shape(), DType::bf16);
    return all;
  }
};

void delta_chunks_forward(Stream stream, const DeltaRule& in, const DeltaChunks& scratch, const Tensor& o, const Tensor& end);
void delta_chunks_backward(Stream stream, const DeltaRule& in, const DeltaChunks& scratch, const DeltaTargets& out);

}  // namespace saccade::cuda
