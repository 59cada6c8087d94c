#pragma once
#include <vector>

#include "kernels/tape.h"

namespace saccade {

/// y = x Wᵀ + b + r      x [..., in]   weight [out, in]   bias [out] or empty   residual, y [..., out], residual may be empty
Tensor linear(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Tensor& residual = {});

/// Several linears of one input, run together: y_i = x W_iᵀ. One pass over x forward, one sum into d_x backward.
std::vector<Tensor> linears(Tape& tape, const Tensor& x, const std::vector<Tensor>& weights);

}  // namespace saccade
