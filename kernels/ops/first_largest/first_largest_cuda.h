#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/tensor.h"

namespace saccade::cuda {

/// x f32 or bf16 [N, V], index i32 [N].
void first_largest(Stream stream, const Tensor& x, const Tensor& index);

}  // namespace saccade::cuda
