#pragma once
#include "kernels/ops/elementwise/elementwise.h"

namespace saccade {

/// Gated linear unit (GeGLU, SwiGLU: arXiv:2002.05202, equation 5):
///   y = f(x W_gᵀ) ∘ (x W_uᵀ)
/// x [..., in]   gate W_g, up W_u [out, in] of accumulation_dtype(x), two tensors   y [..., out] of x's dtype
/// Throws std::invalid_argument where a shape or dtype differs from these or, on CUDA, W_g and W_u are one tensor.
///
/// On CUDA both outputs stand side by side in one matrix [rows, 2 out]. One product makes it where W_u stands behind W_g in one tensor
/// (ParameterMaker::Stack), and backward overwrites it with its gradient.
Tensor gated_linear(Tape& tape, const Tensor& x, const Tensor& gate, const Tensor& up, Activation f);

}  // namespace saccade
