#pragma once
#include <vector>

#include "kernels/elementwise.h"

namespace saccade {

/// Depthwise causal convolution (Gu and Dao 2023, arXiv:2312.00752, section 3.4):
///   p_tc = b_c + Σ_{j<W} w_cj x_{t−W+1+j, c},   y = f(p);   tap W−1 is the current token, x before the sequence is 0
/// x [B, T, C]   weight [C, W]   bias [C] or empty   f none or silu   y [B, T, C]
Tensor causal_conv(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f);

/// The same with the channels of y cut into pieces of these widths, without a pass of their own on CUDA.
std::vector<Tensor> causal_conv_pieces(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f,
                                       const std::vector<int64_t>& widths);

/// The same for tokens that follow those whose last W − 1 inputs stand in history [B, W−1, C]; the history moves on. No gradient.
Tensor causal_conv_next(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f, const Tensor& history);

}  // namespace saccade
