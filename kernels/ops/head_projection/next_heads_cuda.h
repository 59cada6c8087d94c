#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/ops/head_projection/head_projection.h"

namespace saccade::cuda {

/// Queries, keys and values of one token of every sequence, as they came from the product: normed and rotated where they have to be, the
/// queries to q, the others to their rows of the caches.
/// packed [B, 3, H, d]   q [B, 1, H, d]   keys, values [B, capacity, H, d]   of heads that packs_heads (packed_heads_cuda.h) is true for
void next_heads(Stream stream, const Tensor& packed, const HeadProjection& projection, const Tensor& q, const Tensor& keys,
                const Tensor& values);

}  // namespace saccade::cuda
