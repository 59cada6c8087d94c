#pragma once
#include "kernels/ops/attention/head_shape.h"

namespace saccade {

/// Where a backward pass writes the gradient of x per sequence, [B, T, H, d]: the tape's own target, or a buffer that `deliver` adds to it
/// where x is shared by all sequences (batch 1) or is another input, too.
class HeadGradient {
 public:
  /// `op` names the cost of summing. Where x is empty or takes no gradient, the target is empty.
  HeadGradient(Tape& tape, const char* op, const Tensor& x, const HeadShape& shape, bool repeated);

  const GradTarget& target() const { return target_; }
  /// Call it after the backward pass has run.
  void deliver();

 private:
  Tape& tape_;
  const char* op_;
  Tensor x_, buffer_;
  GradTarget target_;
};

}  // namespace saccade
