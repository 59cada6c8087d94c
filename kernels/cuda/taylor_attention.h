#pragma once
#include "kernels/tape.h"

namespace saccade::cuda {

/// o [B, T, H, V] and the denominators f32 [B, H, T]. With a state f32 [B, H, F, V + 1] (else empty) its tokens come first, and it moves
/// on in place.
void taylor_attention(Stream stream, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& state, const Tensor& o,
                      const Tensor& denominator);

/// Whether tensor cores run it (without a state).
inline bool taylor_on_tensor_cores(const Tensor& q, const Tensor& v) {
  return v.dtype() == DType::bf16 && q.dim(3) == 16 && (v.dim(3) == 32 || v.dim(3) == 64);
}

/// Targets may be empty. Scratch: d_denominator f32 [B, H, T]; on tensor cores dn as v.
struct TaylorGradients {
  Tensor o, denominator, d_o;
  GradTarget dq, dk, dv;
  Tensor d_denominator, dn;
};
void taylor_attention_backward(Stream stream, const Tensor& q, const Tensor& k, const Tensor& v, const TaylorGradients& out);

/// weights f32 [H, T, T]
void taylor_weights(Stream stream, const Tensor& q, const Tensor& k, int64_t sequence, const Tensor& weights);

}  // namespace saccade::cuda
