#pragma once
#include "kernels/engine/tape.h"

namespace saccade {

/// For inspection, on the CPU alone: a copy of v [B, T, H, N] in which v_m of head h of sequence 0 is zero. A recurrence that is linear in
/// v then reads nothing of what token m wrote:
///   o_t = Σ_{j≤t, j≠m} a_tj v_j,   which is o_t − a_tm v_m
/// No gradient. Source: this project. Throws UsageError where head or token are not there; DeviceError on CUDA.
Tensor mask_value(Tape& tape, const Tensor& v, int64_t head, int64_t token);

}  // namespace saccade
