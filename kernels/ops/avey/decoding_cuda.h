#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/ops/avey/decoding.h"

namespace saccade::cuda {

/// See kernels/ops/avey/decoding.h. x, rows and Z f32 or bf16; inverse, scores and weights f32.
void inverse_lengths(Stream stream, const Tensor& x, const Tensor& inverse);
void add_maxsim(Stream stream, const Tensor& x, const Tensor& inverse, const avey::RankerOptions& options, const avey::SplitTokens& tokens,
                const Tensor& scores);
void rank_split(Stream stream, const Tensor& scores, const avey::RankerOptions& options, const avey::SplitTokens& tokens,
                const avey::Ranked& out);
void split_context(Stream stream, const Tensor& x, const avey::Ranked& ranked, const avey::SplitContext& context, const Tensor& rows);
void clear_padding(Stream stream, const Tensor& Z, const avey::SplitContext& context);
void rows_of_last(Stream stream, const Tensor& rows, const avey::SplitContext& context, const Tensor& last);

}  // namespace saccade::cuda
