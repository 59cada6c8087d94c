#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/token_position.h"

namespace saccade::cuda {

/// sum += term, elementwise; f32 or bf16 each.
void add_into(Stream stream, const Tensor& sum, const Tensor& term);
/// to = from with conversion; f32 or bf16 each, i32 to i32.
void convert(Stream stream, const Tensor& to, const Tensor& from);
/// Every element of x = value (f32, bf16).
void fill(Stream stream, const Tensor& x, double value);

/// x[b, i] = the position of sequence b + i; x i32 [B, n].
void count_up(Stream stream, const Tensor& x, const TokenPosition& position);
/// sum = (fresh ? 0 : sum) + factor · term; sum f64 [1], term f32 [1].
void sum_up(Stream stream, const Tensor& sum, const Tensor& term, double factor, bool fresh);
/// norm = NaN unless the loss is finite; both f64 [1].
void require_finite(Stream stream, const Tensor& norm, const Tensor& loss);

}  // namespace saccade::cuda
