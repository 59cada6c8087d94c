#pragma once
#include <vector>

#include "kernels/tape.h"

namespace saccade {

struct AdamW {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
};

/// One parameter with its gradient and moments; equal shapes.
struct AdamWSlot {
  Tensor value, grad, first_moment, second_moment;
  bool decay = true;  ///< matrices only
};

/// ‖all gradients‖₂ in a fixed order of summation, accumulated in double. Written to `norm` (f64 [1]).
void gradient_norm(Tape& tape, const std::vector<AdamWSlot>& slots, const Tensor& norm);

/// Clips by global norm (scale = min(1, clip / norm); clip 0: none) and applies AdamW with decoupled decay, bias-corrected:
///   m = β1 m + (1−β1) g;  v = β2 v + (1−β2) g²;  w −= lr (m̂ / (sqrt(v̂) + eps) + decay·weight_decay·w)
/// `norm` as gradient_norm wrote it; `step` counts from 1.
void adamw_step(Tape& tape, const std::vector<AdamWSlot>& slots, const AdamW& options, double learning_rate, int64_t step, double clip,
                const Tensor& norm);

}  // namespace saccade
