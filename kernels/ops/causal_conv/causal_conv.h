#pragma once
#include <vector>

#include "kernels/ops/elementwise/elementwise.h"

namespace saccade {

/// Depthwise causal convolution (Gu and Dao 2023, arXiv:2312.00752, section 3.4):
///   p_tc = b_c + Σ_{j<W} w_cj x_{t−W+1+j, c},   y = f(p);   tap W−1 is the current token, x before the sequence is 0
/// x, y [B, T, C] of one dtype   weight w [C, W], bias b [C] or empty, of accumulation_dtype(x)   f none or silu
/// Throws std::invalid_argument where a shape or dtype differs from these or f is another activation.
Tensor causal_conv(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f);

/// causal_conv and a split of y's channels into outputs [B, T, widths_i]; on CUDA in the same pass.
/// Throws as causal_conv, and std::invalid_argument where the widths do not add up to C; DeviceError on CUDA for more than 8 outputs.
std::vector<Tensor> causal_conv_pieces(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f,
                                       const std::vector<int64_t>& widths);

/// Incremental decoding: causal_conv for tokens after those whose last W − 1 inputs stand in history [B, W−1, C], which is then moved on by
/// T tokens. No gradient. Throws as causal_conv, and std::invalid_argument where history has another shape or not x's dtype.
Tensor causal_conv_next(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f, const Tensor& history);

}  // namespace saccade
