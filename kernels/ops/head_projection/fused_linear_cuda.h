#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/tensor.h"
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/head_projection/head_projection.h"
#include "kernels/ops/norm/norm.h"

namespace saccade::cuda {

/// Products fused with the ops that follow them, where nothing is saved for backward: bf16, on Hopper. Each returns false and does nothing
/// where it does not apply.

/// y = f(x W_gᵀ) * (x W_uᵀ)      x [..., in]   gate, up bf16 [out, in], in and out divisible by 8   y [..., out]
bool gated_product(int device, Activation f, const Tensor& x, const Tensor& gate, const Tensor& up, const Tensor& y);

/// q (where y has it), k, v of kernels/ops/head_projection/head_projection.h from bf16 matrices [query; key; value] that stand behind each
/// other in memory; heads of 64 or 128, of which 128 columns hold whole ones, sequences of at least eight positions, from 0 on.
bool heads_product(int device, const Tensor& x, const HeadProjection& projection, const Tensor& query, const Tensor& key,
                   const Tensor& value, const ProjectedHeads& y);

/// The same for at most kFewRows rows, with the norm of the input (kernels/ops/linear/few_rows_cuda.h).

/// y = f(u W_gᵀ) * (u W_uᵀ)
bool few_rows_gated(int device, Activation f, const Tensor& x, const InputNorm& norm, const Tensor& gate, const Tensor& up,
                    const Tensor& y);

/// project_next_heads (kernels/ops/head_projection/next_heads.h) from bf16 matrices, of heads of 64, or of 128 that are not normed.
bool few_rows_heads(int device, const Tensor& x, const InputNorm& norm, const HeadProjection& projection, const Tensor& query,
                    const Tensor& key, const Tensor& value, const Tensor& q, const Tensor& keys, const Tensor& values);

}  // namespace saccade::cuda
