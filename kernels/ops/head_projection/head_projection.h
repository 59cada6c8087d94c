#pragma once
#include "kernels/ops/attention/attention.h"
#include "kernels/ops/heads/heads.h"

namespace saccade {

struct HeadProjection {
  Tensor query, key, value;                   ///< W_q, W_k, W_v [H d, D] of accumulation_dtype(x); query may be empty: then there is no q
  Tensor query_norm_weight, key_norm_weight;  ///< [d] with norm rms, else empty
  int64_t heads = 1;
  HeadOptions options;
  Tensor key_rows = {}, value_rows = {};  ///< where k and v go (KV cache), of their shape; empty: new memory. Not when recording
};

struct ProjectedHeads {
  Tensor q, k, v;  ///< [B, T, H, d]
};

/// Projection to heads (arXiv:1706.03762, section 3.2.2) with prepare_heads of kernels/ops/heads/heads.h on queries and keys:
///   q = prepare_heads(x W_qᵀ),   k = prepare_heads(x W_kᵀ),   v = x W_vᵀ
/// x [B, T, D]   q, k, v of x's dtype
/// Throws std::invalid_argument where a weight has another shape or dtype, heads do not divide its rows, or key_rows or value_rows have
/// another shape or dtype or are given when recording; UsageError and DeviceError as prepare_heads.
///
/// On CUDA, but for a single position, one product makes queries and keys where W_k stands behind W_q in one tensor
/// (ParameterMaker::Stack), and one pass norms and rotates them into the layout that attention reads.
ProjectedHeads project_heads(Tape& tape, const Tensor& x, const HeadProjection& projection);

struct AttendedHeads {
  ProjectedHeads heads;
  Attention attention;
};

/// attention(project_heads(x)) (kernels/ops/attention/attention.h); throws what both throw. On CUDA, without norms and for T ≤ 4096,
/// backward leaves the gradients of queries, keys and values side by side, rotated back, so that one product takes them to x and one to the
/// weights; heads then have no gradients of their own.
AttendedHeads attend_heads(Tape& tape, const Tensor& x, const HeadProjection& projection, const ScoreOptions& score,
                           bool want_entropy = false);

}  // namespace saccade
