#pragma once
#include "kernels/ops/attention/head_shape.h"

namespace saccade {

/// Inputs of the backward pass of a causal softmax over all visible keys.
struct ScoreBackward {
  const char* op;  ///< name under which its cost is counted
  HeadShape shape;
  ScoreOptions options;
  Tensor q, k, v, lse;
  Tensor soft;             ///< [B, T, H, d] P v, for delta = rowsum(dO ∘ P v)
  bool values;             ///< whether dv = Pᵀ dO is wanted
  Tensor selected;         ///< i32 [B, H, T], on CUDA: dv_j = Σ_{t: selected(t) = j} dO_t instead; else empty
  Tensor packed = {};      ///< on CUDA: [B T, 3, H d] takes the gradients of q, k and v instead of the tape, rotated back where the
  double rotary_base = 0;  ///< rotary base is not 0 (kernels/ops/heads/heads.h)
};

/// Gives the gradients of q and k (and v) to the tape, with delta = rowsum(dO ∘ soft) (arXiv:2307.08691, algorithm 2; straight-through:
/// arXiv:2505.18522, section 4.1):
///   dS = P ∘ (dO vᵀ − delta),   dq = scale · dS k,   dk = scale · dSᵀ q,   dv = Pᵀ dO
/// Those of a q or k with batch 1 are summed over the sequences. d_o [B, T, H, d] of v's dtype. Throws DeviceError on CUDA for d above 256.
void score_backward(Tape& tape, const ScoreBackward& in, const Tensor& d_o);

/// Multiply-adds of one forward pass over all visible pairs and both products, as FLOPs.
double pair_flops(const HeadShape& shape, const ScoreOptions& options);

}  // namespace saccade
