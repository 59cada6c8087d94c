#pragma once
#include "kernels/tape.h"

namespace saccade {

/// s_tj = scale · (q_t · k_j) − slope_h (t − j)·[alibi],   visible: t − window < j <= t (window 0: all j <= t)
struct ScoreOptions {
  double scale = 1;
  int64_t window = 0;
  bool alibi = false;  ///< slope of head h (1-based) is 2^(−8h/H)
};

struct Attention {
  Tensor o;        ///< [B, T, H, d]
  Tensor lse;      ///< [B, H, T] ln Σ_j exp(s_tj)
  Tensor entropy;  ///< [B, H, T] −Σ_j p_tj ln p_tj in nats; empty unless asked for
};

/// Causal softmax attention in tiles, never T x T (specification 1.3, 6).
/// q, k, v [B, T, H, d]; q or k may be [1, T, H, d], shared by all sequences (constant keys / both), their gradient is summed.
Attention attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& options, bool want_entropy = false);

/// p_tj of one sequence for inspection: weights [H, T, T], zero above the diagonal. The only place that is T x T.
Tensor attention_weights(Tape& tape, const Tensor& q, const Tensor& k, const ScoreOptions& options, int64_t sequence);

}  // namespace saccade
