#pragma once
#include "kernels/cuda/attention.h"

namespace saccade::cuda {

/// Dense causal attention on Hopper's own matrix instructions (wgmma, TMA): bf16, heads of up to 64, with or without a window, no ALiBi.
/// False: not such a GPU or not such a case, and nothing was done.
bool hopper_forward(Stream stream, const AttentionForward& in);
bool hopper_backward(Stream stream, const AttentionBackward& in);

}  // namespace saccade::cuda
