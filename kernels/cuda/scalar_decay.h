#pragma once
#include "kernels/tape.h"

namespace saccade::cuda {

/// cpu::ScalarDecay with v = step ∘ x and o + skip ∘ x. Activations f32 or bf16; decays, states and sums f32.
struct DecayForm {
  Tensor q, k;        ///< [B, T, G, N]; head h reads group ⌊h G / H⌋
  Tensor x;           ///< [B, T, H, P]
  Tensor step;        ///< f32 [B, H, T]; empty: 1
  Tensor running;     ///< f32 [B, H, T] or [B, 1, T]: log decays, summed inside each chunk; empty: no decay
  Tensor skip = {};   ///< f32 [H]; empty: 0
  Tensor start = {};  ///< f32 [B, H, N, P]; empty: zeros

  static constexpr int64_t kChunk = 64;
  int64_t chunks() const { return (x.dim(1) + kChunk - 1) / kChunk; }
};

/// Scratch of one pass; backward asks for more.
struct DecayScratch {
  Tensor scores;              ///< q kᵀ inside chunks, f32 [B, chunks, G, 64, 64]
  Tensor states;              ///< at the start of every chunk and at the end, f32 [B, chunks + 1, H, N, P]
  Tensor d_states, d_scores;  ///< the same of gradients; scores head by head
};

inline DecayScratch decay_scratch(Tape& tape, const DecayForm& in, bool backward) {
  constexpr int64_t kChunk = DecayForm::kChunk;
  const int64_t batch = in.x.dim(0), chunks = in.chunks(), heads = in.x.dim(2);
  const Shape states{batch, chunks + 1, heads, in.q.dim(3), in.x.dim(3)};
  DecayScratch scratch{tape.empty({batch, chunks, in.q.dim(2), kChunk, kChunk}, DType::f32), tape.empty(states, DType::f32), {}, {}};
  if (backward) {
    scratch.d_states = tape.empty(states, DType::f32);
    scratch.d_scores = tape.empty({batch, chunks, heads, kChunk, kChunk}, DType::f32);
  }
  return scratch;
}

/// o [B, T, H, P], and the state after the last token [B, H, N, P] unless `end` is empty; it may be in.start.
void scalar_decay(Stream stream, const DecayForm& in, const DecayScratch& scratch, const Tensor& o, const Tensor& end);

/// Gradients. dq, dk and dx may be empty targets; d_end and d_start may be empty. Every head's own, f32 [B, H, T]: of the step through v,
/// of the skip through o, and of the log decay of each token (empty: not wanted).
struct DecayGradients {
  Tensor d_o, d_end;
  GradTarget dq, dk, dx;
  Tensor d_step, d_skip, dg, d_start;
};
void scalar_decay_backward(Stream stream, const DecayForm& in, const DecayScratch& scratch, const DecayGradients& out);

}  // namespace saccade::cuda
