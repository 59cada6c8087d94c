#pragma once
#include "kernels/cuda/runtime.h"
#include "kernels/elementwise.h"
#include "kernels/tensor.h"

namespace saccade::cuda {

/// input += bias and value = f(input), row by row; value may be input itself. f32 or bf16 [rows, n], bias f32, n of them.
void bias_activate(Stream stream, Activation f, const Tensor& input, const Tensor& bias, const Tensor& value);
/// d *= f'(x), from the input; or from the value where `from_value` (none, relu, relu2).
void times_slope(Stream stream, Activation f, const Tensor& d, const Tensor& kept, bool from_value);
/// gated = f(y) * l
void gate(Stream stream, Activation f, const Tensor& y, const Tensor& l, const Tensor& gated);
/// d_gated is replaced by f(y) * l; empty d_y or d_l: not wanted.
void gate_backward(Stream stream, Activation f, const Tensor& d_gated, const Tensor& y, const Tensor& l, const Tensor& d_y, bool add_y,
                   const Tensor& d_l, bool add_l);
/// y = h + bias, row by row.
void add_bias(Stream stream, const Tensor& h, const Tensor& bias, const Tensor& y);

/// sums (+)= Σ rows of x [rows, columns] in a fixed order; columns divisible by 8. parts f32 [count, columns] is scratch.
void column_sums_in_pieces(Stream stream, const Tensor& x, const Tensor& sums, bool add, const Tensor& parts);

}  // namespace saccade::cuda
