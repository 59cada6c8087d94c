#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/plain.h"
#include "kernels/engine/tape.h"

namespace saccade {

constexpr int64_t kFewRows = 64;

/// Whether products of x [rows, in] may be those of kernels/cuda/gemm/few_rows.cu: so few rows in bf16 for a GPU, with nothing saved for
/// backward. What an op allocates may depend on it, since a plan gives the same answer.
inline bool few_rows(const Tape& tape, const Tensor& x) {
  return tape.device().targets_cuda() && !tape.recording() && tensor_core_type(x.dtype()) && x.size() <= kFewRows * x.dim(-1);
}

}  // namespace saccade

namespace saccade::cuda {

/// A product of at most kFewRows rows on Hopper, as decoding has them: a cluster of blocks takes 64 columns of the result, each block a
/// part of the sum, and fetches its weights while the kernel before still runs; what follows the product is done with its float32 sums. The
/// result of a row does not depend on the other rows or on their number. Returns false and does nothing where it does not apply, or to more
/// than 8 Mi weights, for which it is not made; others of the kind: kernels/ops/head_projection/fused_linear_cuda.h.
///
/// y = x Wᵀ + bias + residual      x bf16 [..., in]   weight bf16 [out, in], in and out divisible by 8   bias f32 [out]   residual, y
/// [..., out]   bias and residual may be empty
bool few_rows_linear(int device, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& residual, const Tensor& y);

}  // namespace saccade::cuda
