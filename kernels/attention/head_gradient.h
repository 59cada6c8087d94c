#pragma once
#include "kernels/attention/head_shape.h"

namespace saccade {

/// Where a backward writes the gradient of x per sequence, [B, T, H, d]: the tape's own target, or a buffer that `deliver`
/// passes on when x is shared by all sequences (batch 1) or stands for another input too.
class HeadGradient {
 public:
  /// `op` names the cost of summing; x may be empty or take no gradient: then so is the target.
  HeadGradient(Tape& tape, const char* op, const Tensor& x, const HeadShape& shape, bool repeated);

  const GradTarget& target() const { return target_; }
  /// After the backward ran.
  void deliver();

 private:
  Tape& tape_;
  const char* op_;
  Tensor x_, buffer_;
  GradTarget target_;
};

}  // namespace saccade
