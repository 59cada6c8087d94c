#pragma once
#include "kernels/engine/tape.h"

namespace saccade::cuda {

/// g = −e^{a_log} softplus(a + bias); a f32 or bf16 [rows, H], the rest f32.
struct LogDecay {
  Tensor a, a_log, bias;
};
void log_decay(Stream stream, const LogDecay& in, const Tensor& g);
/// parts f32 [2, run_parts(rows), H].
void log_decay_backward(Stream stream, const LogDecay& in, const Tensor& dg, const GradTarget& da, const GradTarget& d_log,
                        const GradTarget& d_bias, const Tensor& parts);

/// y = σ(x), y f32.
void sigmoid_gate(Stream stream, const Tensor& x, const Tensor& y);
/// dx (+)= dy y (1 − y), dy f32.
void sigmoid_gate_backward(Stream stream, const Tensor& y, const Tensor& dy, const GradTarget& dx);

}  // namespace saccade::cuda
