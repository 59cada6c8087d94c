#pragma once
#include "kernels/tape.h"

namespace saccade {

/// g = −e^{A_log} softplus(a + bias): the log decay of Gated DeltaNet (arXiv:2412.06464).
/// a [..., H]   a_log, bias [H]   g [..., H], f32 also where a is bf16
Tensor log_decay(Tape& tape, const Tensor& a, const Tensor& a_log, const Tensor& bias);

}  // namespace saccade
