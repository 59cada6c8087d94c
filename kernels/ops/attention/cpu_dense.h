#pragma once
#include "kernels/ops/attention/head_shape.h"

namespace saccade::cpu {

/// Causal softmax attention in tiles: o = softmax(s) v with its statistics (shapes as in kernels/ops/attention/attention.h).
/// entropy and best (the key with the greatest score, i32 [B, H, T]) may be empty. The queries may be the newest ones of longer sequences.
struct DenseForward {
  HeadShape shape;  ///< of queries
  ScoreOptions options;
  Tensor q, k, v;
  Tensor o, lse, entropy, best;
  int64_t first = 0;     ///< position of the first query
  int64_t capacity = 0;  ///< rows of k and v per sequence; 0: as many as queries
};
template <class T>
void dense_forward(const DenseForward& in);

/// Gradients through the scores (arXiv:2307.08691, algorithm 2), P recomputed from lse and delta:
///   dS = P ∘ (dO vᵀ − delta),   dq = scale · dS k,   dk = scale · dSᵀ q,   dv = Pᵀ dO
/// Targets are [B, T, H, d] (a shared q or k has one per sequence); empty ones are left out.
struct DenseBackward {
  HeadShape shape;
  ScoreOptions options;
  Tensor q, k, v, d_o, lse;
  Tensor delta;  ///< delta [B, H, T]: rowsum(dO ∘ o), which is Σ_j p_tj (dO_t · v_j)
  GradTarget dq, dk, dv;
};
template <class T>
void dense_backward(const DenseBackward& in);

/// delta = rowsum(dO ∘ o): delta[b, h, t] = d_o[b, t, h] · o[b, t, h].
template <class T>
void output_dots(const HeadShape& shape, const Tensor& d_o, const Tensor& o, const Tensor& delta);

/// sum[t, h, i] (+)= Σ_b x[b, t, h, i], in order of b.
template <class T>
void sum_over_batch(const Tensor& x, const GradTarget& sum);

}  // namespace saccade::cpu
