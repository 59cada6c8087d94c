#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/tensor.h"

namespace saccade::cuda {

/// x f32 [S·T], sums f64 [T].
void add_position_sums(Stream stream, const Tensor& x, const Tensor& sums);

}  // namespace saccade::cuda
