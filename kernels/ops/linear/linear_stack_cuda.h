#pragma once
#include <vector>

#include "kernels/engine/tape.h"

namespace saccade::cuda {

/// Products with several matrices W_i [n_i, in] of one input, side by side in rows [rows, n], n = Σ n_i. Matrices that stand
/// behind each other in one tensor (ParameterMaker::Stack) count as one [n, in]: one product for all.

/// packed [rows, n] = x [W_0; W_1; …]ᵀ
void stack_forward(int device, const Tensor& x, const std::vector<Tensor>& weights, const Tensor& packed);
/// d_W_i (+)= (columns of W_i in d_packed)ᵀ x; empty targets are skipped.
void stack_backward_weights(int device, const Tensor& x, const Tensor& d_packed, const std::vector<GradTarget>& targets,
                            const std::vector<Tensor>& weights);
/// d_x (+)= d_packed [W_0; W_1; …]
void stack_backward_input(int device, const Tensor& d_packed, const std::vector<Tensor>& weights, const GradTarget& dx);

}  // namespace saccade::cuda
