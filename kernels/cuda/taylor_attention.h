#pragma once
#include "kernels/tape.h"

namespace saccade::cuda {

/// o [B, T, H, V] and the denominators f32 [B, H, T]. With a state f32 [B, H, F, V + 1] (else empty) its tokens come first, and it moves
/// on in place.
void taylor_attention(Stream stream, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& state, const Tensor& o,
                      const Tensor& denominator);

/// Targets may be empty. d_denominator: scratch f32 [B, H, T].
struct TaylorGradients {
  Tensor o, denominator, d_o;
  GradTarget dq, dk, dv;
  Tensor d_denominator;
};
void taylor_attention_backward(Stream stream, const Tensor& q, const Tensor& k, const Tensor& v, const TaylorGradients& out);

/// weights f32 [H, T, T]
void taylor_weights(Stream stream, const Tensor& q, const Tensor& k, int64_t sequence, const Tensor& weights);

}  // namespace saccade::cuda
