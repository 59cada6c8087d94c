#pragma once
#include <algorithm>

#include "kernels/engine/cuda_runtime.h"
#include "kernels/ops/heads/heads.h"

namespace saccade::cuda {

/// x, y f32 or bf16 [B, T, H, d]; weight f32 [d] or empty.
void prepare_heads(Stream stream, const Tensor& x, const Tensor& weight, const HeadOptions& options, const Tensor& y);

/// Positions per block, and blocks over the sequences: enough to fill a GPU, few enough to share angles.
constexpr int64_t kHeadPositions = 8;
inline int64_t head_blocks(const Shape& x) { return std::min(x[0], std::max<int64_t>(1, 4096 * kHeadPositions / x[1])); }
/// Rows of `partial`.
inline int64_t head_partials(const Shape& x) { return (x[1] + kHeadPositions - 1) / kHeadPositions * head_blocks(x); }
/// Empty dx, dweight are not wanted. partial f32 [head_partials, d] with dweight.
void prepare_heads_backward(Stream stream, const Tensor& x, const Tensor& weight, const HeadOptions& options, const Tensor& dy,
                            const Tensor& dx, bool add_dx, const Tensor& dweight, bool add_dweight, const Tensor& partial);

}  // namespace saccade::cuda
