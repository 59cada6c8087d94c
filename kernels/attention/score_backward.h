#pragma once
#include "kernels/attention/head_shape.h"

namespace saccade {

/// What the backward of a causal softmax over all visible keys needs.
struct ScoreBackward {
  const char* op;  ///< name under which its cost is counted
  HeadShape shape;
  ScoreOptions options;
  Tensor q, k, v, lse;
  Tensor soft;             ///< [B, T, H, d] P v: its product with dO is the mean of dP
  bool values;             ///< whether dv = Pᵀ dO belongs to it
  Tensor selected;         ///< i32 [B, H, T], on CUDA: dv_j = Σ_{t: selected(t) = j} dO_t instead; else empty
  Tensor packed = {};      ///< on CUDA: [B T, 3, H d] takes the gradients of q, k and v instead of the tape, but for heads turned by
  double rotary_base = 0;  ///< this (kernels/heads.h), of what they were before
};

/// Sends the gradients of q and k (and v) to the tape; those of a q or k with batch 1 are summed over the sequences.
void score_backward(Tape& tape, const ScoreBackward& in, const Tensor& d_o);

/// Multiply-adds of one forward pass over all visible pairs and both products, as FLOPs.
double pair_flops(const HeadShape& shape, const ScoreOptions& options);

}  // namespace saccade
