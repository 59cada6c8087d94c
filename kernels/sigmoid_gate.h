#pragma once
#include "kernels/tape.h"

namespace saccade {

/// y = σ(x) in the accumulation type: f32 also where x is bf16, as gates that a recurrence multiplies up must be (DeltaNet's β,
/// arXiv:2406.06484).      x, y of one shape
Tensor sigmoid_gate(Tape& tape, const Tensor& x);

}  // namespace saccade
