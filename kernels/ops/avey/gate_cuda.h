#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/tensor.h"
#include "kernels/ops/elementwise/elementwise.h"

namespace saccade::cuda {

/// input += bias and value = f(input), row by row; value may be input itself. f32 or bf16 [rows, n], bias f32, n of them.
void bias_activate(Stream stream, Activation f, const Tensor& input, const Tensor& bias, const Tensor& value);
/// d *= f'(x), from the input; or from the value where `from_value` (none, relu, relu2).
void times_slope(Stream stream, Activation f, const Tensor& d, const Tensor& saved, bool from_value);
/// gated = f(y) * l
void gate(Stream stream, Activation f, const Tensor& y, const Tensor& l, const Tensor& gated);
/// Empty d_y or d_l: not wanted. d_l comes multiplied by slope'(l), for none, relu and relu2; with the latter and f none y is y * l.
void gate_backward(Stream stream, Activation f, const Tensor& d_gated, const Tensor& y, const Tensor& l, const Tensor& d_y, bool add_y,
                   const Tensor& d_l, bool add_l, Activation slope);
/// y = h + bias, row by row.
void add_bias(Stream stream, const Tensor& h, const Tensor& bias, const Tensor& y);

constexpr int64_t kSumParts = 256;  ///< of rows: enough for 256 columns to keep the GPU busy
/// sums (+)= Σ rows of x [rows, columns] in a fixed order. scratch f32, kSumParts or more for each column.
void sum_rows(Stream stream, const Tensor& x, const Tensor& sums, bool add, const Tensor& scratch);

}  // namespace saccade::cuda
