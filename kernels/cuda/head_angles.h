#pragma once
#include <cuda_fp16.h>

#include "kernels/cuda/runtime.h"

namespace saccade::cuda {

/// Cosines and sines of the angles by which pairs (i, i + width / 2) of heads are turned (kernels/heads.h), [at least length, width / 2].
/// Made once and kept; their rounding is finer than that of the bf16 gradients they turn.
const __half2* head_angles(Stream stream, int device, double rotary_base, int64_t width, int64_t length);

}  // namespace saccade::cuda
