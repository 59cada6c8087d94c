#pragma once
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/norm/norm.h"

namespace saccade {

/// Gated linear unit (GeGLU, SwiGLU: arXiv:2002.05202, equation 5):
///   y = f(u W_gᵀ) ∘ (u W_uᵀ),   u = x or, with a norm, rms_norm(x)
/// x [..., in]   gate W_g, up W_u [out, in] of accumulation_dtype(x), two tensors   y [..., out] of x's dtype
/// Throws std::invalid_argument where a shape or dtype differs from these or, on CUDA, W_g and W_u are one tensor, and as rms_norm does.
///
/// On CUDA both outputs stand side by side in one matrix [rows, 2 out]. One product makes it where W_u stands behind W_g in one tensor
/// (ParameterMaker::Stack), and backward overwrites it with its gradient. Of a few rows (kernels/ops/linear/few_rows_cuda.h), one pass
/// makes y.
Tensor gated_linear(Tape& tape, const Tensor& x, const Tensor& gate, const Tensor& up, Activation f, const InputNorm& norm = {});

}  // namespace saccade
