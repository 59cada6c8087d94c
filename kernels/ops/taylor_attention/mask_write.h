#pragma once
#include "kernels/engine/tape.h"

namespace saccade {

/// For inspection, on the CPU alone: the rows t ≥ m of head h of sequence 0 of taylor_attention's result o as they are when token m has
/// written nothing,
///   o_t = Σ_{j≤t, j≠m} p_tj v_j / (Σ_{j≤t, j≠m} p_tj + ε),   p and ε as in taylor_attention
/// written over those rows. Summed in double. Source: this project. q, k, v, o as in taylor_attention, from position 0 on. No gradient.
/// Throws UsageError where head or token are not there; DeviceError on CUDA.
void mask_taylor_write(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, int64_t head, int64_t token, const Tensor& o);

}  // namespace saccade
