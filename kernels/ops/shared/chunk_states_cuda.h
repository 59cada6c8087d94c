#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/tape.h"
#include "kernels/ops/shared/segments_cuda.h"

namespace saccade::cuda {

constexpr int kChunkTokens = 64;
constexpr int kStateColumns = 32;  ///< columns per block of the sequential pass; columns are independent

/// The sequential pass of a chunk form, head by head. With M_c the linear map of chunk c on the state besides the decay,
///   S_{c+1} = last_c ∘ S_c + M_c S_c + L_c,   and backward   D_{c−1} = last_c ∘ D_c + M_cᵀ D_c + L_c
/// where S_c is the state at the start of chunk c and D_c the gradient of the one at its end. Where heads and columns are too few to fill
/// the GPU, segments of the chain run in parallel: first for S from zeros and P from the unit matrix without L; then S += P S_before goes
/// from segment to segment, and every segment runs again from its true start.
struct ChunkStates {
  Tensor transition;  ///< M bf16 [B H, chunks, K, K]
  Tensor last;        ///< f32 [B H, chunks, K or 1]
  Tensor states;      ///< bf16 [B H, chunks + 1, K, V]: L_c in slot c, becomes S_c (D_c); forward the last slot takes the end state
  Tensor carried;     ///< f32 [B H, segments, K, V + K], [S | P] where each begins; empty: one segment
};

/// Memory for `carried` of one chain, forward or backward.
inline Tensor chunk_states_carried(Tape& t, int64_t batch_heads, int64_t chunks, int64_t keys, int64_t values) {
  const int64_t segments = segments_of(chunks, batch_heads * (values / kStateColumns), {2, 8});
  return segments > 1 ? t.empty({batch_heads, segments, keys, values + keys}, DType::f32) : Tensor();
}

/// K 32, 64 or 96, V a multiple of 32.
/// start, end: f32 [B H, K, V] or empty.
void chunk_states_forward(Stream stream, const ChunkStates& s, const Tensor& start, const Tensor& end);
/// d_end, d_start: f32 [B H, K, V] or empty; d_start is added to when `add`.
void chunk_states_backward(Stream stream, const ChunkStates& s, const Tensor& d_end, const Tensor& d_start, bool add);

}  // namespace saccade::cuda
