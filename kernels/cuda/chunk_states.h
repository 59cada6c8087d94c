#pragma once
#include "kernels/cuda/runtime.h"
#include "kernels/tensor.h"

namespace saccade::cuda {

constexpr int kChunkTokens = 64;

/// The sequential part of a chunk form, head by head. With M_c what a chunk makes of the state beside its decay,
///   S_{c+1} = last_c ∘ S_c + M_c S_c + L_c,   and backward   D_{c−1} = last_c ∘ D_c + M_cᵀ D_c + L_c
/// where S_c is the state at the start of chunk c and D_c the gradient of the one at its end.
struct ChunkStates {
  Tensor transition;  ///< M bf16 [B H, chunks, K, K]
  Tensor last;        ///< f32 [B H, chunks, K or 1]
  Tensor states;      ///< bf16 [B H, chunks + 1, K, V]: L_c in slot c, becomes S_c (D_c); forward the slot behind the last takes the end
};

/// K 32, 64 or 96, V a multiple of 32.
/// start, end: f32 [B H, K, V] or empty.
void chunk_states_forward(Stream stream, const ChunkStates& s, const Tensor& start, const Tensor& end);
/// d_end, d_start: f32 [B H, K, V] or empty; d_start is added to when `add`.
void chunk_states_backward(Stream stream, const ChunkStates& s, const Tensor& d_end, const Tensor& d_start, bool add);

}  // namespace saccade::cuda
