#pragma once
#include <vector>

#include "kernels/tape.h"

namespace saccade {

/// y = x Wᵀ + b      x [..., in]   weight [out, in]   bias [out] or empty   y [..., out]
Tensor linear(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias = {});

/// Several linears of one input, run together: y_i = x W_iᵀ. One pass over x forward, one sum into d_x backward.
std::vector<Tensor> linears(Tape& tape, const Tensor& x, const std::vector<Tensor>& weights);

}  // namespace saccade
