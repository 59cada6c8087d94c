#pragma once
#include "kernels/ops/attention/attention_cuda.h"

namespace saccade::cuda {

/// Dense causal attention by cuDNN's fused kernel, forward only:
///   o = softmax(scale · q kᵀ + mask) v,   lse = ln Σ exp
/// for bf16 and scale > 0, without ALiBi, window, chunks, entropy, best keys or shared q or k. Its backward pass is not used: its
/// bytes differ from run to run, or it takes T x T memory. Returns false and does nothing where cuDNN is absent or has no engine for this
/// shape. The first call for a shape must come outside of graph capture.
bool cudnn_attention_forward(const AttentionForward& in);

}  // namespace saccade::cuda
