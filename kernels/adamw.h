#pragma once
#include <array>
#include <vector>

#include "kernels/tape.h"

namespace saccade {

struct AdamW {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
};

/// One parameter with its gradient and moments; equal shapes.
struct AdamWSlot {
  Tensor value, grad, first_moment, second_moment;
  bool decay = true;         ///< matrices only
  Tensor compute_copy = {};  ///< bf16 copy that matrix products read, written with the value; empty: none
};

/// ‖all gradients‖₂ in a fixed order of summation, accumulated in double. Written to `norm` (f64 [1]).
void gradient_norm(Tape& tape, const std::vector<AdamWSlot>& slots, const Tensor& norm);

/// What changes from step to step, for adamw_step to read on its device: learning rate, 1 − β1^step, 1 − β2^step.
/// `step` counts from 1. Keeping it in memory lets a recorded step be replayed.
std::array<double, 3> adamw_rates(const AdamW& options, double learning_rate, int64_t step);

/// Clips by global norm (scale = min(1, clip / norm); clip 0: none) and applies AdamW with decoupled decay, bias-corrected:
///   m = β1 m + (1−β1) g;  v = β2 v + (1−β2) g²;  w −= lr (m̂ / (sqrt(v̂) + eps) + decay·weight_decay·w)
/// `rates` f64 [3] holds adamw_rates; `norm` as gradient_norm wrote it: when it is not finite, nothing is touched.
void adamw_step(Tape& tape, const std::vector<AdamWSlot>& slots, const AdamW& options, const Tensor& rates, double clip,
                const Tensor& norm);

}  // namespace saccade
