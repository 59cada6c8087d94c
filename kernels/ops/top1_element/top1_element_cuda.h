#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/ops/attention/head_shape.h"

namespace saccade::cuda {

/// o_t = v_{a(t)}; v, o f32 or bf16 [B, T, H, d], selected i32 [B, H, T].
void gather_values(Stream stream, const HeadShape& shape, const Tensor& v, const Tensor& selected, const Tensor& o);

}  // namespace saccade::cuda
