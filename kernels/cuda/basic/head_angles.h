#pragma once
#include <cuda_fp16.h>

#include "kernels/engine/cuda_runtime.h"

namespace saccade::cuda {

/// Cosines and sines of the rotary angles of pairs (i, i + width / 2) (kernels/ops/heads/heads.h), [at least length, width / 2]. Computed
/// once and cached; their rounding is finer than that of the bf16 gradients that they rotate.
const __half2* head_angles(Stream stream, int device, double rotary_base, int64_t width, int64_t length);

}  // namespace saccade::cuda
