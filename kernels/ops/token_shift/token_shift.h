#pragma once
#include <vector>

#include "kernels/engine/tape.h"

namespace saccade {

/// Whose weight μ is: that of the previous token (RWKV-6, 7, and the papers' lerp) or of the current one (the public code of RWKV-5).
enum class ShiftWeight { previous, current };

/// Token shift of RWKV (Peng et al. 2024, arXiv:2404.05892, equation 3, section 4.1.1; with μ from the data equation 15, section 4.2.1),
/// several blends of one input, x⁻_t = x_{t−1}:
///   previous: y_i = x + (x⁻ − x) ∘ μ_i,   current: y_i = x⁻ + (x − x⁻) ∘ μ_i
/// x, y_i [B, T, C] of one dtype   before [B, C] of x's dtype: the token in front of the first, zeros when empty (takes no gradient)
/// weights μ_i [C], the same for all tokens, of accumulation_dtype(x), or [B, T, C] of x's dtype; different tensors
/// Throws std::invalid_argument where x, before or a weight has another shape or before another dtype; DeviceError on CUDA for more than 8
/// blends.
std::vector<Tensor> token_shift(Tape& tape, const Tensor& x, const Tensor& before, const std::vector<Tensor>& weights, ShiftWeight of);

/// The last token of every sequence, `before` of what follows: x [B, T, C] → [B, C]. No gradient.
/// Throws std::invalid_argument unless x has rank 3 and a token.
Tensor last_token(Tape& tape, const Tensor& x);

}  // namespace saccade
