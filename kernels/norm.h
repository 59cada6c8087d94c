#pragma once
#include "kernels/tape.h"

namespace saccade {

/// y = x / sqrt(mean(x²) + eps) · gain      x [..., D]   gain [D]
Tensor rms_norm(Tape& tape, const Tensor& x, const Tensor& gain, double eps);

/// y = (x − mean(x)) / sqrt(var(x) + eps) · gain + bias      x [..., D]   gain, bias [D]
Tensor layer_norm(Tape& tape, const Tensor& x, const Tensor& gain, const Tensor& bias, double eps);

}  // namespace saccade
