#pragma once
#include "kernels/ops/attention/attention_cuda.h"

namespace saccade::cuda {

/// Dense causal attention with Hopper's wgmma and TMA: bf16, heads of up to 64, with or without a window, no ALiBi. Returns false and does
/// nothing on other GPUs and in other cases.
bool hopper_forward(Stream stream, const AttentionForward& in);
bool hopper_backward(Stream stream, const AttentionBackward& in);

}  // namespace saccade::cuda
