#pragma once
#include <vector>

#include "kernels/engine/cuda_runtime.h"
#include "kernels/ops/adamw/adamw.h"

namespace saccade {

/// Elements per block of the multi-tensor kernels.
constexpr int64_t kAdamWSlice = 2048;
static_assert(kNormCut % kAdamWSlice == 0);

}  // namespace saccade

namespace saccade::cuda {

/// Multi-tensor: one launch over pieces of all slots, kAdamWSlice elements each. `squares` f64 [norm_pieces]
void gradient_squares(Stream stream, const std::vector<AdamWSlot>& slots, const Tensor& squares);
void norm_of_squares(Stream stream, const Tensor& squares, const Tensor& norm);

/// `rates` f64 [3] on the device: learning rate, 1 − β1^t, 1 − β2^t. Nothing is touched when the norm is not finite.
void adamw_step(Stream stream, const std::vector<AdamWSlot>& slots, const AdamW& options, const Tensor& rates, double clip,
                const Tensor& norm);

}  // namespace saccade::cuda
