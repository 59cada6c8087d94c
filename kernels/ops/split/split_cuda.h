#pragma once
#include <vector>

#include "kernels/engine/tape.h"

namespace saccade::cuda {

/// y_i = columns of x [rows, Σ widths]; f32 or bf16.
void split(Stream stream, const Tensor& x, const std::vector<Tensor>& y);
/// Backward pass; an empty dy_i stands for zeros. widths: those of y.
void split_backward(Stream stream, const std::vector<Tensor>& dy, const std::vector<int64_t>& widths, const GradTarget& dx);

}  // namespace saccade::cuda
