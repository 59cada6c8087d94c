#pragma once
#include "kernels/engine/tape.h"

namespace saccade::cuda {

/// Layer norm inside each of `groups` slices; x, y f32 or bf16 [..., D], weight `weight` and bias f32 [D].
void group_norm(Stream stream, const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t groups, double eps, const Tensor& y);
/// parts f32 [slice_parts(tokens, groups), D].
void group_norm_backward(Stream stream, const Tensor& x, const Tensor& weight, const Tensor& dy, int64_t groups, double eps,
                         const GradTarget& dx, const GradTarget& d_weight, const GradTarget& d_bias, const Tensor& weight_parts,
                         const Tensor& bias_parts);

}  // namespace saccade::cuda
