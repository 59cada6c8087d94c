#pragma once
#include <vector>

#include "kernels/engine/tape.h"

namespace saccade {

/// Source: torch.nn.functional.linear, with a residual sum r in the same pass:
///   y = x Wᵀ + b + r
/// x [..., in]   weight W [out, in]   bias b [out] or empty   residual r, y [..., out], r may be empty
/// x, r and y are of one dtype, W and b of accumulation_dtype(x); on CUDA products read the compute copy of W.
/// Throws std::invalid_argument where a shape or dtype differs from these.
Tensor linear(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Tensor& residual = {});

/// Several linears of one input: y_i = x W_iᵀ, recorded as one op. Shapes, dtypes and errors as above for every W_i.
std::vector<Tensor> linears(Tape& tape, const Tensor& x, const std::vector<Tensor>& weights);

}  // namespace saccade
