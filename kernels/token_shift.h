#pragma once
#include <vector>

#include "kernels/tape.h"

namespace saccade {

/// Whose weight a blend holds: that of the previous token (RWKV-6, 7) or of the current one (RWKV-5).
enum class ShiftWeight { previous, current };

/// Token shift of RWKV (Peng et al. 2024, arXiv:2404.05892, section 3), several blends of one input:
///   x⁻_t = x_{t−1},   previous: y_i = x + (x⁻ − x) ∘ w_i,   current: y_i = x⁻ + (x − x⁻) ∘ w_i
/// x [B, T, C]   before [B, C]: the token in front of the first, zeros when empty (takes no gradient)
/// w_i [C], the same for all tokens, or [B, T, C]; different tensors   y_i [B, T, C]
std::vector<Tensor> token_shift(Tape& tape, const Tensor& x, const Tensor& before, const std::vector<Tensor>& weights, ShiftWeight of);

/// The last token of every sequence, `before` of what follows: x [B, T, C] → [B, C]. No gradient.
Tensor last_token(Tape& tape, const Tensor& x);

}  // namespace saccade
