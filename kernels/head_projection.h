#pragma once
#include "kernels/attention.h"
#include "kernels/heads.h"

namespace saccade {

struct HeadProjection {
  Tensor query, key, value;     ///< [H d, D]; query may be empty: then there is no q
  Tensor query_gain, key_gain;  ///< [d] with norm rms, else empty
  int64_t heads = 1;
  HeadOptions options;
  Tensor key_rows = {}, value_rows = {};  ///< where k and v go, of their size; empty: new memory. Not when recording
};

struct ProjectedHeads {
  Tensor q, k, v;  ///< [B, T, H, d]
};

/// q = prepare_heads(x W_qᵀ), k = prepare_heads(x W_kᵀ), v = x W_vᵀ      x [B, T, D]      (kernels/heads.h, kernels/linear.h)
///
/// On CUDA, but for a single position, queries and keys are made by one product, where W_q and W_k are neighbours in memory, and go from
/// there to where attention wants them in the pass that norms and turns them.
ProjectedHeads project_heads(Tape& tape, const Tensor& x, const HeadProjection& projection);

struct AttendedHeads {
  ProjectedHeads heads;
  Attention attention;
};

/// attention(project_heads(x)) (kernels/attention.h). On CUDA, without norms and in sequences not too long, backward leaves the gradients
/// of queries, keys and values side by side, turned back, as one product takes them to x and one to the weights; then heads have no
/// gradients of their own.
AttendedHeads attend_heads(Tape& tape, const Tensor& x, const HeadProjection& projection, const ScoreOptions& score,
                           bool want_entropy = false);

}  // namespace saccade
