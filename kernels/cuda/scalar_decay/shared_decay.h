#pragma once
#include "kernels/engine/tape.h"

namespace saccade::cuda {

/// One decay for all heads of a token, g_t = −e^α softplus(s_t + b) (ablation of arXiv:2505.18522, section 3.1.1).
struct SharedDecay {
  Tensor s;               ///< [B, T], f32 or bf16
  Tensor bias, exponent;  ///< b and α, f32 [1]
};

/// running f32 [B, 1, T]: sums of g inside each chunk of DecayForm.
void shared_decay(Stream stream, const SharedDecay& in, const Tensor& running);

/// dg f32 [B, H, T], summed over heads here. Targets may be empty. parts: workspace f32 [2, B].
struct SharedDecayGradients {
  Tensor dg;
  GradTarget s, bias, exponent;
  Tensor parts;
};
void shared_decay_backward(Stream stream, const SharedDecay& in, const SharedDecayGradients& out);

}  // namespace saccade::cuda
