#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/tensor.h"
#include "kernels/ops/cross_entropy/targeted_rows.h"

namespace saccade::cuda {

/// Per row: losses[r] = −ln softmax(logits[r])[targets[r]]; logits are left as (softmax − onehot + penalty · largest logit, on
/// the first element that has it) · scale when `gradient`. A row with target −1 has loss 0 and is left as zeros.
/// largest[r], unless it is null: the place of the first of the row's largest logits, NaN passed over; −1 with target −1 and where no logit
/// is above −∞.
/// logits f32 or bf16 [rows, V]; targets, largest i32 [rows]; losses f32 [rows].
void softmax_cross_entropy(Stream stream, const Tensor& logits, const int32_t* targets, float* losses, int32_t* largest, int64_t rows,
                           bool gradient, double scale, double penalty);

/// The same for long rows of bf16 on Hopper. Returns false and does nothing on other GPUs and for other rows.
bool hopper_softmax_cross_entropy(Stream stream, const Tensor& logits, const int32_t* targets, float* losses, int32_t* largest,
                                  int64_t rows, bool gradient, double scale, double penalty);

/// Fills `list` from targets i32 [N], −1 where a row has none.
void list_targets(Stream stream, const Tensor& targets, const TargetedRows& list);
/// gathered[i] = hidden[list.rows[first + i]], zeros where there is no row. hidden [N, D], gathered [count, D], f32 or bf16.
void gather_rows(Stream stream, const Tensor& hidden, const TargetedRows& list, int64_t first, const Tensor& gathered);
/// to[n] = *factor · from[list.places[n]], zeros where n has no place. from [M, D], to [N, D] f32 or bf16; factor f32 [1] on the device.
void spread_rows(Stream stream, const Tensor& from, const TargetedRows& list, const Tensor& factor, const Tensor& to);
/// tokens[n] = losses[list.places[n]], 0 without a target, NaN for a target without a place. losses f32 [M], tokens f32 [N].
void spread_losses(Stream stream, const Tensor& losses, const TargetedRows& list, const Tensor& tokens);
/// to[n] = from[list.places[n]], −1 where n has no place. from i32 [M], to i32 [N].
void spread_largest(Stream stream, const Tensor& from, const TargetedRows& list, const Tensor& to);

/// mean[0] = (Σ x) / n in a fixed order. x f32 [n], mean f32 [1].
void mean(Stream stream, const Tensor& x, const Tensor& mean);

}  // namespace saccade::cuda
