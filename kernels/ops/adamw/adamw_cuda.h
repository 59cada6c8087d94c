#pragma once
#include <vector>

#include "kernels/engine/cuda_runtime.h"
#include "kernels/ops/adamw/adamw.h"

namespace saccade {

/// Elements per block of the multi-tensor kernels.
constexpr int64_t kAdamWSlice = 2048;
inline int64_t gradient_norm_parts(const std::vector<AdamWSlot>& slots) {
  int64_t count = 0;
  for (const AdamWSlot& slot : slots) count += (slot.value.size() + kAdamWSlice - 1) / kAdamWSlice;
  return count;
}

}  // namespace saccade

namespace saccade::cuda {

/// Multi-tensor: one launch over pieces of all slots. `partial` f64 [gradient_norm_parts(slots)] is workspace.
void gradient_norm(Stream stream, const std::vector<AdamWSlot>& slots, const Tensor& partial, const Tensor& norm);

/// `rates` f64 [3] on the device: learning rate, 1 − β1^t, 1 − β2^t. Nothing is touched when the norm is not finite.
void adamw_step(Stream stream, const std::vector<AdamWSlot>& slots, const AdamW& options, const Tensor& rates, double clip,
                const Tensor& norm);

}  // namespace saccade::cuda
