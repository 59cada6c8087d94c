#pragma once
#include "kernels/engine/tape.h"

namespace saccade::cuda {

/// Equations: kernels/ops/rwkv7/rwkv7_gates.h. f32 or bf16 [..., C]; k_a f32 [C]; log_w and its gradient f32.
struct Rwkv7GateInputs {
  Tensor d, rate, k, kappa, k_a;
};
struct Rwkv7GateOutputs {
  Tensor log_w, k, a, b;
};
void rwkv7_gates(Stream stream, const Rwkv7GateInputs& in, const Rwkv7GateOutputs& out);

struct Rwkv7GateTargets {
  GradTarget d, rate, k, kappa, k_a;
};
/// `up`: gradients of the outputs. parts f32 [run_parts(tokens), C].
void rwkv7_gates_backward(Stream stream, const Rwkv7GateInputs& in, const Rwkv7GateOutputs& up, const Rwkv7GateTargets& to,
                          const Tensor& parts);

/// y = v + (first − v) ∘ σ(raw)
void blend_values(Stream stream, const Tensor& v, const Tensor& first, const Tensor& raw, const Tensor& y);
void blend_values_backward(Stream stream, const Tensor& v, const Tensor& first, const Tensor& raw, const Tensor& dy, const GradTarget& dv,
                           const GradTarget& d_first, const GradTarget& d_raw);

}  // namespace saccade::cuda
