#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/ops/shared/rank_one_recurrence_cuda.h"
#include "kernels/ops/wkv7/wkv7_cpu.h"

namespace saccade::cuda {

/// As a rank-one recurrence, w = e^{log_w}.
inline RankOneShape wkv7_shape(const cpu::Wkv7Inputs& in) {
  return {in.shape.batch, in.shape.length, in.shape.heads, in.shape.width, in.shape.width};
}

/// r, k, v, a, b, y f32 or bf16; log_w f32 or bf16; states f32.
void wkv7_forward(Stream stream, const cpu::Wkv7Inputs& in, const Tensor& y, const Tensor& state);
void wkv7_backward(Stream stream, const cpu::Wkv7Inputs& in, const cpu::Wkv7Gradients& out, const RankOneScratch& scratch);

/// Read weights of some sequences, f32 [sequences · H, T, T].
void wkv7_weights(Stream stream, const cpu::Wkv7Inputs& in, const Sequences& sequences, const Tensor& weights);

}  // namespace saccade::cuda
