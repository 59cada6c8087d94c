#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/tensor.h"

namespace saccade {
/// Rows of partial sums in norm_backward and column_sums, which are then added in order.
constexpr int64_t kNormParts = 528, kColumnParts = 128;
}  // namespace saccade

namespace saccade::cuda {

/// y = (x − mean) · inverse · w + bias, w = `weight`; an empty bias: no centring. x, y f32 or bf16 [rows, D]; weight, bias f32 [D].
void norm(Stream stream, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, double eps);

/// Empty outputs are skipped. d_weight, d_bias f32 [D]; `add…`: += instead of =. Workspace f32 [kNormParts, D] for each.
void norm_backward(Stream stream, const Tensor& x, const Tensor& weight, const Tensor& dy, bool centred, double eps, const Tensor& dx,
                   bool add_dx, const Tensor& d_weight, bool add_weight, const Tensor& weight_parts, const Tensor& d_bias, bool add_bias,
                   const Tensor& bias_parts);

/// sums[j] (+)= Σ_p parts[p, j] in a fixed order; parts f32 [count, n], sums f32 [n].
void sum_parts(Stream stream, const Tensor& parts, const Tensor& sums, bool add);

/// sums[j] (+)= Σ_r x[r, j] in order of r; x f32 or bf16 [rows, n], sums f32 [n]. Workspace f32 [kColumnParts, n].
void column_sums(Stream stream, const Tensor& x, int64_t columns, const Tensor& sums, bool add, const Tensor& scratch);

}  // namespace saccade::cuda
