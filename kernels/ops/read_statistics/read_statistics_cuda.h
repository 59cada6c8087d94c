#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/tensor.h"

namespace saccade::cuda {

/// Equations: kernels/ops/read_statistics/read_statistics.h. weights [H, T, T] f32 or bf16, sums f64 [H, 2], reads f64 [H, T, 3].
void read_sums(Stream stream, const Tensor& weights, int64_t near, const Tensor& sums);
void query_reads(Stream stream, const Tensor& weights, int64_t near, const Tensor& reads);

}  // namespace saccade::cuda
