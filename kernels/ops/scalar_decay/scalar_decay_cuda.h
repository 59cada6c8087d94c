#pragma once
#include <algorithm>

#include "kernels/engine/plain.h"
#include "kernels/engine/tape.h"

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

  /// Segments per pass over chunks, which run in parallel on tensor cores: as many as fill a large GPU where batch x heads is small.
  int64_t segments() const {
    constexpr int64_t kBlocks = 384, kLeastChunks = 8;
    const int64_t most = std::max<int64_t>(std::min(kBlocks / (x.dim(0) * x.dim(2)), chunks() / kLeastChunks), 1),
                  length = (chunks() + most - 1) / most;
    return (chunks() + length - 1) / length;
  }
  int64_t segment_chunks() const { return (chunks() + segments() - 1) / segments(); }
};

/// Whether tensor cores run it: bf16, and sizes with a kernel.
inline bool runs_on_tensor_cores(const DecayForm& in) {
  const int64_t keys = in.q.dim(3), width = in.x.dim(3);
  return tensor_core_type(in.x.dtype()) && keys % 8 == 0 && keys <= 128 && (width == 32 || width == 64);
}
/// N padded for tensor cores; keys from N on are zero.
inline int64_t padded_keys(const DecayForm& in) { return in.q.dim(3) > 64 ? 128 : 64; }

/// Saved for backward: `scores` and `given` of the forward pass's workspace. Empty: recomputed.
struct DecaySaved {
  Tensor scores, given;
};

/// Workspace of one pass.
struct DecayScratch {
  DecaySaved made;
  Tensor scores;  ///< q kᵀ inside chunks, [B, chunks, G, 64, 64]; bf16 on tensor cores, else f32
  Tensor states,
      d_states;          ///< of all chunks: f32 [B, chunks + 1, H, N, P]; on tensor cores bf16 [B, chunks, H, P, padded N], backward alone
  Tensor d_scores;       ///< without tensor cores: gradients of every head's scores
  Tensor reads, writes;  ///< with tensor cores: gradients of decays from a token's read and write of the state, f32 [B, H, T]
  Tensor given;          ///< with several segments: their start states (backward: end gradients), f32 [B, H, segments, N, P]
  Tensor kept;           ///< with several segments: the decay of a state through each, f32 [B, H, segments]
};

inline DecayScratch decay_scratch(Tape& tape, const DecayForm& in, bool backward, const DecaySaved& made = {}) {
  constexpr int64_t kChunk = DecayForm::kChunk;
  const int64_t batch = in.x.dim(0), length = in.x.dim(1), chunks = in.chunks(), heads = in.x.dim(2), keys = in.q.dim(3),
                width = in.x.dim(3);
  const bool tensor_cores = runs_on_tensor_cores(in);
  const DType dtype = tensor_cores ? DType::bf16 : DType::f32;
  const Shape states = tensor_cores ? Shape{batch, chunks, heads, width, padded_keys(in)} : Shape{batch, chunks + 1, heads, keys, width};
  DecayScratch scratch;
  scratch.made = made;
  scratch.scores = made.scores ? made.scores : tape.empty({batch, chunks, in.q.dim(2), kChunk, kChunk}, dtype);
  if (backward || !tensor_cores) scratch.states = tape.empty(states, dtype);
  if (const int64_t segments = in.segments(); tensor_cores && segments > 1) {
    scratch.given = tape.empty({batch, heads, segments, keys, width}, DType::f32);
    scratch.kept = tape.empty({batch, heads, segments}, DType::f32);
  }
  if (!backward) return scratch;
  scratch.d_states = tape.empty(states, dtype);
  if (tensor_cores)
    scratch.reads = tape.empty({batch, heads, length}, DType::f32), scratch.writes = tape.empty({batch, heads, length}, DType::f32);
  else
    scratch.d_scores = tape.empty({batch, chunks, heads, kChunk, kChunk}, DType::f32);
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
