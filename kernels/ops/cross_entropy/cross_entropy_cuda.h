#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/tensor.h"

namespace saccade::cuda {

/// Per row: losses[r] = −ln softmax(logits[r])[targets[r]]; logits are left as (softmax − onehot + penalty · largest logit, on
/// the first element that has it) · scale when `gradient`. A row with target −1 has loss 0 and is left as zeros.
/// logits f32 or bf16 [rows, V]; targets i32 [rows]; losses f32 [rows].
void softmax_cross_entropy(Stream stream, const Tensor& logits, const int32_t* targets, float* losses, int64_t rows, bool gradient,
                           double scale, double penalty);

/// The same for long rows of bf16 on Hopper. Returns false and does nothing on other GPUs and for other rows.
bool hopper_softmax_cross_entropy(Stream stream, const Tensor& logits, const int32_t* targets, float* losses, int64_t rows, bool gradient,
                                  double scale, double penalty);

/// mean[0] = (Σ x) / n in a fixed order. x f32 [n], mean f32 [1].
void mean(Stream stream, const Tensor& x, const Tensor& mean);

}  // namespace saccade::cuda
