#pragma once
#include "kernels/engine/tape.h"

namespace saccade {

/// RMSNorm over the last dimension (arXiv:1910.07467, equation 4), with the weight w = `weight`:
///   y = x / sqrt(mean(x²) + eps) ∘ w
/// x, y [..., D] of one dtype   weight [D] of accumulation_dtype(x)
/// Throws std::invalid_argument where weight has another shape or dtype; DeviceError in backward on CUDA for D above 24 576.
Tensor rms_norm(Tape& tape, const Tensor& x, const Tensor& weight, double eps);

/// A norm that an op applies to its input first: u = rms_norm(x, weight, epsilon), of x's dtype. An empty weight: u = x.
struct InputNorm {
  Tensor weight = {};
  double epsilon = 0;
  explicit operator bool() const { return static_cast<bool>(weight); }
  /// Throws std::invalid_argument, in the name of the op, where rms_norm would.
  void check(const char* op, const Tensor& x) const;
  /// u as a tensor of its own.
  Tensor operator()(Tape& tape, const Tensor& x) const { return weight ? rms_norm(tape, x, weight, epsilon) : x; }
};

/// Layer norm over the last dimension (arXiv:1607.06450, section 3), with the weight w = `weight` and the biased variance:
///   y = (x − mean(x)) / sqrt(var(x) + eps) ∘ w + bias
/// x, y [..., D] of one dtype   weight, bias [D] of accumulation_dtype(x)
/// Throws std::invalid_argument where bias is empty or weight or bias has another shape or dtype; DeviceError in backward on CUDA for D
/// above 12 288.
Tensor layer_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);

}  // namespace saccade
