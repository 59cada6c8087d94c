#pragma once
#include "kernels/engine/cuda_limits.h"
#include "kernels/engine/plain.h"
#include "kernels/ops/shared/chunk_states_cuda.h"
#include "kernels/ops/wkv7/wkv7_cuda.h"

namespace saccade::cuda {

/// Most bytes of shared memory of a kernel of the chunk form.
constexpr int64_t wkv7_chunk_shared(int64_t width) { return width == 32 ? 120 << 10 : 176 << 10; }

/// The chunk form of RWKV-7's recurrence (arXiv:2503.14456, equation 17) on tensor cores, in bf16, chunks of 64. With G and E the running
/// sums of log w in a chunk, the token's own included or not, m = G in the middle of the chunk, and factors of r, a, k, b
///   R = r e^{G − m},   A = a e^{E − m},   K = k e^{m − G},   B = b e^{m − G}
/// whose exponents stay small because log w > −0.61 (that of half a chunk may not add up to less than −80):
///   A_rk = R Kᵀ, A_rb = R Bᵀ (j ≤ i),   A_ak = A Kᵀ, A_ab = A Bᵀ (j < i),   T = (I − A_ab)⁻¹,   S̃ = e^m S
///   X = T (A S̃ + A_ak V),   y = R S̃ + A_rk V + A_rb X,   S' = e^{G_L} S + e^{G_L − m} (Kᵀ V + Bᵀ X)
/// All but the sequential pass over states runs over all chunks in parallel: S' = e^{G_L} S + M S + L with M = e^{G_L − m} Bᵀ T A e^m and
/// L = e^{G_L − m} (Kᵀ V + Bᵀ T A_ak V) (chunk_states.h). Likewise backward, with D̃ = e^{G_L − m} dS':
///   Y = Tᵀ (A_rbᵀ dO + B D̃),   dS = e^{G_L} dS' + Mᵀ dS' + e^m (Rᵀ dO + Aᵀ Tᵀ A_rbᵀ dO)
/// The plain form runs instead on GPUs with less shared memory per block.
inline bool has_wkv7_chunks(const cpu::Wkv7Inputs& in) {
  const int64_t n = in.shape.width;
  return tensor_core_type(in.r.dtype()) && in.shape.length >= kChunkTokens / 2 && (n == 32 || n == 64) &&
         wkv7_chunk_shared(n) <= shared_memory_per_block();
}

/// Saved for backward, and workspace of the backward pass.
struct Wkv7Chunks {
  ChunkStates states, gradients;  ///< they share all but the states
  Tensor solve;                   ///< T bf16 [B H, chunks, 64, 64]

  Wkv7Chunks() = default;
  Wkv7Chunks(Tape& t, const cpu::Wkv7Inputs& in) {
    const int64_t batch_heads = in.shape.sequences(), n = in.shape.width, chunks = (in.shape.length + kChunkTokens - 1) / kChunkTokens;
    states = {t.empty({batch_heads, chunks, n, n}, DType::bf16), t.empty({batch_heads, chunks, n}, DType::f32),
              t.empty({batch_heads, chunks + 1, n, n}, DType::bf16), chunk_states_carried(t, batch_heads, chunks, n, n)};
    solve = t.empty({batch_heads, chunks, kChunkTokens, kChunkTokens}, DType::bf16);
  }
  Wkv7Chunks for_backward(Tape& t) const {
    Wkv7Chunks all = *this;
    all.gradients = {states.transition, states.last, t.empty(states.states.shape(), DType::bf16), states.carried};
    return all;
  }
};

void wkv7_chunks_forward(Stream stream, const cpu::Wkv7Inputs& in, const Wkv7Chunks& scratch, const Tensor& y, const Tensor& state);
/// out.dy must not be empty.
void wkv7_chunks_backward(Stream stream, const cpu::Wkv7Inputs& in, const Wkv7Chunks& scratch, const cpu::Wkv7Gradients& out);

}  // namespace saccade::cuda
