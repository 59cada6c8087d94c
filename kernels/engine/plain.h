#pragma once
#include "kernels/engine/tensor.h"

namespace saccade {

/// Whether GPUs compute plainly: without our own kernels for tensor cores and for Hopper (fused products, attention, chunk forms of
/// recurrences), cuDNN, captured graphs and the side stream. Products are cuBLASLt's, everything else the kernels that run in float32 and
/// on any GPU, one after the other on one stream. Slow; for the question whether a result is the fast path's fault. True where the
/// environment has SACCADE_PLAIN=1 (anything but empty or 0). Runs record it (`plain_kernels` in run.json).
bool plain_kernels();

/// The same from a program (tests). Models, plans and steps made before keep what they have: make them anew.
void set_plain_kernels(bool on);

/// Whether kernels of our own for tensor cores take activations of this type: bf16, unless computing plainly.
inline bool tensor_core_type(DType dtype) { return dtype == DType::bf16 && !plain_kernels(); }

}  // namespace saccade
