#pragma once
#include "kernels/cuda/attention.h"

namespace saccade::cuda {

/// Dense causal attention by cuDNN's fused kernel, forward only:
///   o = softmax(scale · q kᵀ + mask) v,   lse = ln Σ exp
/// for bf16 and scale > 0, without ALiBi, window, chunks, entropy, best keys or shared q or k. Its backward is not used: run after
/// run it gives other bytes, or takes T x T memory. False: cuDNN is absent or has no engine for this
/// shape, and nothing was done. The first call for a shape, made outside a recording, prepares it.
bool cudnn_attention_forward(const AttentionForward& in);

}  // namespace saccade::cuda
