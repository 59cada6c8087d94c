#pragma once
#include "kernels/engine/plain.h"
#include "kernels/engine/tape.h"
#include "kernels/ops/shared/sequences.h"

namespace saccade::cuda {

/// Long sequences: all pairs inside segments of `length` tokens (a multiple of 128), the tokens of earlier segments through `past`
/// f32 [B H, segments − 1, F, V + 1], for each segment but the first the state Σ φ(k_j) [v_j | 1] of all tokens before it. Empty: one
/// segment.
struct TaylorSegments {
  int64_t length = 0;
  Tensor past;
};

/// Whether a sequence takes more than one segment.
inline bool taylor_in_segments(const Tensor& q, const Tensor& v, int64_t segment) {
  return q.dim(1) > segment && q.dim(3) == 16 && (v.dim(3) == 32 || v.dim(3) == 64);
}

/// o [B, T, H, V] and the denominators f32 [B, H, T]. With a state f32 [B, H, F, V + 1] (else empty) its tokens come first, and it is
/// updated in place. Writes segments.past.
void taylor_attention(Stream stream, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& state, const TaylorSegments& segments,
                      const Tensor& o, const Tensor& denominator);

/// Whether tensor cores run it (without a state).
inline bool taylor_on_tensor_cores(const Tensor& q, const Tensor& v) {
  return tensor_core_type(v.dtype()) && q.dim(3) == 16 && (v.dim(3) == 32 || v.dim(3) == 64);
}

/// Targets may be empty. Workspace: d_denominator f32 [B, H, T]; on tensor cores dn as v; with segments `future` as their past.
struct TaylorGradients {
  TaylorSegments segments;
  Tensor o, denominator, d_o;
  GradTarget dq, dk, dv;
  Tensor d_denominator, dn, future;
};
void taylor_attention_backward(Stream stream, const Tensor& q, const Tensor& k, const Tensor& v, const TaylorGradients& out);

/// weights f32 [sequences · H, T, T]
void taylor_weights(Stream stream, const Tensor& q, const Tensor& k, const Sequences& sequences, const Tensor& weights);

}  // namespace saccade::cuda
