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
CrossEntropy linear_cross_entropy(Tape& tape, const Tensor& hidden, const Tensor& weight, const Tensor& targets);

}  // namespace saccade
