#pragma once
#include "kernels/engine/plain.h"
#include "kernels/engine/tape.h"
#include "kernels/ops/shared/sequences.h"

namespace saccade::cuda {

/// Long sequences: all pairs inside segments of `length` tokens (a multiple of 128), the tokens of earlier segments through `past`, the
/// states Σ φ(k_j) [v_j | 1] of all tokens before a segment. Without a carried state f32 [B H, segments − 1, F, V + 1], for each segment
/// but the first; behind a carried state f32 [B H, segments, F, V + 1], for the first too. Empty: one segment, or token by token from the
/// carried state.
struct TaylorSegments {
  int64_t length = 0;
  Tensor past;
};

/// Up to so many tokens behind a carried state go one by one.
constexpr int64_t kTaylorSingleTokens = 32;

/// How many states `past` has per head; 0: it is empty. q [B, T, H, d], v [B, T, H, V]; `carried`: whether there is a carried state.
inline int64_t taylor_past_states(const Tensor& q, const Tensor& v, int64_t segment, bool carried) {
  if (q.dim(3) != 16 || (v.dim(3) != 32 && v.dim(3) != 64)) return 0;
  const int64_t boundaries = (q.dim(1) - 1) / segment;
  if (!carried) return boundaries;
  return q.dim(1) > kTaylorSingleTokens ? boundaries + 1 : 0;
}

/// o [B, T, H, V] and the denominators f32 [B, H, T]. With a state f32 [B, H, F, V + 1] (else empty) its tokens come first, and it is
/// updated in place. Writes segments.past.
void taylor_attention(Stream stream, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& state, const TaylorSegments& segments,
                      const Tensor& o, const Tensor& denominator);

/// Whether tensor cores run it (behind a carried state only where it goes by segments).
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
