#pragma once
#include "kernels/engine/tape.h"
#include "kernels/ops/shared/sequences.h"

namespace saccade {

/// s_tj = scale · (q_t · k_j) − slope_h (t − j)·[alibi],   visible: t − window < j ≤ t (window 0: all j ≤ t)
/// ALiBi: arXiv:2108.12409, section 3. Windows: arXiv:2505.18522, section 3.2.1.
struct ScoreOptions {
  double scale = 1;
  int64_t window = 0;
  bool alibi = false;           ///< slope of head h (1-based) is 2^(−8h/H), or
  bool released_alibi = false;  ///< with alibi: that of its released code, another where H is no power of two (attention/alibi.h)
};

struct Attention {
  Tensor o;        ///< [B, T, H, d] of v's dtype
  Tensor lse;      ///< [B, H, T] ln Σ_j exp(s_tj), of accumulation_dtype(v)
  Tensor entropy;  ///< [B, H, T] −Σ_j p_tj ln p_tj in nats, dtype as lse; empty unless asked for
};

/// Causal softmax attention (arXiv:1706.03762, equation 1) in tiles, never T x T (arXiv:2307.08691, algorithms 1 and 2):
///   p_tj = exp(s_tj) / Σ_i exp(s_ti),   o_t = Σ_j p_tj v_j
/// q, k, v [B, T, H, d] of one dtype; q or k may be [1, T, H, d], shared by all sequences (trained constants in place of keys or of both,
/// arXiv:2505.18522, section 3.2.2), then their gradient is summed over B.
/// Throws UsageError where a shape or dtype differs from these or window < 0; DeviceError on CUDA for d above 256.
Attention attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& options, bool want_entropy = false);

/// Attention weights p_tj of some sequences for inspection: [sequences · H, T, T] of accumulation_dtype(q), zero above the diagonal. The
/// only tensor that is T x T. Where q and k are of one sequence, that stands for all. Throws as attention, and UsageError for sequences
/// that are not there.
Tensor attention_weights(Tape& tape, const Tensor& q, const Tensor& k, const ScoreOptions& options, const Sequences& sequences);

}  // namespace saccade
