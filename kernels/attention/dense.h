#pragma once
#include "kernels/attention/head_shape.h"

namespace saccade::cpu {

/// Causal softmax attention in tiles: o = softmax(s) v with its statistics (shapes as in kernels/attention.h).
/// entropy and best (greatest score's key, i32 [B, H, T]) may be empty. Queries may be the newest of longer sequences.
struct DenseForward {
  HeadShape shape;  ///< of queries
  ScoreOptions options;
  Tensor q, k, v;
  Tensor o, lse, entropy, best;
  int64_t first = 0;     ///< position of the first query
  int64_t capacity = 0;  ///< rows of k and v a sequence; 0: as many as queries
};
template <class T>
void dense_forward(const DenseForward& in);

/// Gradients through the scores, P recomputed from lse: dS = P ∘ (dO vᵀ − mean), dq = scale · dS k, dk = scale · dSᵀ q, and
/// dv = Pᵀ dO. Targets are [B, T, H, d] (a shared q or k has one per sequence); empty ones are left out.
struct DenseBackward {
  HeadShape shape;
  ScoreOptions options;
  Tensor q, k, v, d_o, lse;
  Tensor mean;  ///< [B, H, T] Σ_j p_tj (dO_t · v_j)
  GradTarget dq, dk, dv;
};
template <class T>
void dense_backward(const DenseBackward& in);

/// mean[b, h, t] = d_o[b, t, h] · o[b, t, h].
template <class T>
void output_dots(const HeadShape& shape, const Tensor& d_o, const Tensor& o, const Tensor& mean);

/// sum[t, h, i] (+)= Σ_b x[b, t, h, i], in order of b.
template <class T>
void sum_over_batch(const Tensor& x, const GradTarget& sum);

}  // namespace saccade::cpu
