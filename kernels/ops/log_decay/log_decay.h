#pragma once
#include "kernels/engine/tape.h"

namespace saccade {

/// Log decay g = ln α of Gated DeltaNet (arXiv:2412.06464, section 3.4: the parametrisation of Mamba-2), per head:
///   g = −e^{A_log} softplus(a + bias)
/// a [..., H]   a_log, bias [H], g [..., H] of accumulation_dtype(a)
/// Throws std::invalid_argument where a_log or bias is not [H].
Tensor log_decay(Tape& tape, const Tensor& a, const Tensor& a_log, const Tensor& bias);

}  // namespace saccade
