#pragma once
#include "kernels/tape.h"

namespace saccade {

struct CrossEntropy {
  Tensor mean;    ///< scalar [1], nats, over the N targets
  Tensor tokens;  ///< [N] nats per target, no gradient
};

/// Next-token loss of logits = hidden · weightᵀ without ever holding all logits: they are made and used in row blocks.
/// hidden [..., D] with N rows   weight [V, D]   targets i32 with N elements
/// −ln softmax(logits)[target], mean over N.
/// With a max_logit_penalty c, in 1/nats, the gradients are those of mean + c/2 · mean over N of (max_v logit_v)²: every row's
/// largest logit, the first where several are equal, gets c/N · itself more. The values stay the cross-entropy's.
/// c = 1e-4 in RWKV's official training (RWKV-LM, L2Wrap).
CrossEntropy linear_cross_entropy(Tape& tape, const Tensor& hidden, const Tensor& weight, const Tensor& targets,
                                  double max_logit_penalty = 0);

}  // namespace saccade
