#pragma once
#include <algorithm>
#include <array>

#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/plain.h"
#include "kernels/engine/tape.h"
#include "kernels/ops/attention/head_shape.h"
#include "kernels/ops/heads/heads.h"

namespace saccade {

/// Whether a head's halves divide into 16-byte vectors held by a power of two of threads, at most 16.
inline bool packs_heads(DType dtype, int64_t width) {
  const int64_t lanes = width * byte_size(dtype) / 32;
  return !plain_kernels() && lanes * 32 == width * byte_size(dtype) &&
         (lanes == 1 || lanes == 2 || lanes == 4 || lanes == 8 || lanes == 16);
}

/// Blocks that share the sequences of a position: enough to fill a GPU, few enough to share angles.
inline int64_t packed_head_splits(const Shape& q) { return std::clamp<int64_t>(q[0] * q[2] / 192, 1, q[0]); }
/// Most rows of partial sums of the gradient of the norm's weight (a block has at least one position).
inline int64_t packed_head_partials(const Shape& q) { return q[1] * packed_head_splits(q); }

}  // namespace saccade

namespace saccade::cuda {

/// q = packed[:, 0], normed and rotated, k = packed[:, 1] likewise      packed [B·T, 2, H, d]   q, k [B, T, H, d]
/// (kernels/ops/heads/heads.h)
void unpack_heads(Stream stream, const Tensor& packed, const Tensor& q_norm_weight, const Tensor& k_norm_weight, const HeadOptions& options,
                  const Tensor& q, const Tensor& k);

/// d_packed from dq, dk. packed only with a norm. d_norm_weights (empty: not wanted) (+)= theirs; partial f32
/// [2, packed_head_partials, d] then.
void unpack_heads_backward(Stream stream, const Tensor& packed, const Tensor& q_norm_weight, const Tensor& k_norm_weight,
                           const HeadOptions& options, const Tensor& dq, const Tensor& dk, const Tensor& d_packed,
                           const std::array<GradTarget, 2>& d_norm_weights, const Tensor& partial);

/// Rotates the gradients of q and k back by the angles of their positions, in place: the first two parts of rows that are `stride` apart.
void rotate_heads_back(Stream stream, const HeadShape& shape, double rotary_base, const Tensor& packed, int64_t stride);

}  // namespace saccade::cuda
