#pragma once
#include "kernels/elementwise.h"

namespace saccade {

/// y = f(x W_gᵀ) * (x W_uᵀ)      x [..., in]   gate, up [out, in]   y [..., out]      (GeGLU, SwiGLU: arXiv:2002.05202)
///
/// On CUDA both products stand side by side in one matrix [rows, 2 out], made by one product where W_g and W_u are neighbours
/// in memory; backward turns it into its own gradient in place.
Tensor gated_linear(Tape& tape, const Tensor& x, const Tensor& gate, const Tensor& up, Activation f);

}  // namespace saccade
