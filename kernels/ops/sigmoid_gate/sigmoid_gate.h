#pragma once
#include "kernels/engine/tape.h"

namespace saccade {

/// A gate that a recurrence multiplies up over many tokens, as β of DeltaNet (arXiv:2406.06484, section 2.2), hence not in bf16:
///   y = σ(x)
/// x [...]   y of x's shape and accumulation_dtype(x)
/// Throws nothing of its own.
Tensor sigmoid_gate(Tape& tape, const Tensor& x);

}  // namespace saccade
