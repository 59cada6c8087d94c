#pragma once
#include "kernels/engine/tape.h"

namespace saccade {

struct CrossEntropy {
  Tensor mean;    ///< [1], nats, over the N rows
  Tensor tokens;  ///< [N] nats per target, no gradient
};

struct CrossEntropyOptions {
  double max_logit_penalty = 0;  ///< c, in 1/nats
  int64_t most_targets = 0;      ///< M, of the rows that have a target there are no more; 0: every row may have one
  Tensor largest = {};           ///< i32 with N elements, written: the place of every row's largest logit; empty: not wanted
};

/// Cross entropy of the output matrix's logits, made and used in blocks of rows, so that all logits never exist at once:
///   z_n = h_n Wᵀ,   tokens_n = −ln softmax(z_n)[target_n],   mean = Σ_n tokens_n / N
/// A row with target −1 counts for nothing: its tokens_n and its gradients are 0, and it has no penalty. N counts it; who wants the mean
/// over the others multiplies by their share (`scaled`, kernels/ops/elementwise/elementwise.h).
/// hidden h [..., D] with N rows   weight W [V, D] of accumulation_dtype(hidden)   targets i32 with N elements
/// mean, tokens of accumulation_dtype(hidden)
/// With M below N logits, losses and gradients are made of the rows with a target alone, in their order, in memory for M rows; values are
/// the same but for the order in which d_W is summed. A GPU computes as many as M rows always, the CPU those that there are.
/// With a max_logit_penalty c, the gradients are those of mean + c/2 · Σ_n (max_v z_nv)² / N; the first of equal logits takes
/// it. The values stay the cross entropy's. RWKV's official training has c = 1e-4.
/// `largest` has no gradient and changes nothing else:
///   largest_n = min argmax_v z_nv
/// NaN is passed over; −1 in rows without a target and in rows without a logit above −∞, as those of NaN alone are.
/// Source: torch.nn.functional.cross_entropy; blocks with gradients made in the forward pass: arXiv:2410.10989, FusedLinearCrossEntropy;
/// penalty: RWKV-LM, L2Wrap.
/// Throws std::invalid_argument where a shape or dtype differs from these, N is 0 or c or M is negative; on the CPU DataError for a target
/// outside −1 … V − 1 (CUDA does not check) and for more than M targets (on CUDA the tokens_n of those after the first M are NaN, and so is
/// the mean; their largest_n is −1).
CrossEntropy linear_cross_entropy(Tape& tape, const Tensor& hidden, const Tensor& weight, const Tensor& targets,
                                  const CrossEntropyOptions& options = {});

}  // namespace saccade
