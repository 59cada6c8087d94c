#pragma once
#include <array>
#include <vector>

#include "kernels/engine/tape.h"

namespace saccade {

struct AdamW {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
};

/// One parameter with its gradient and moments, all of one shape and dtype. gradient_norm needs no moments.
struct AdamWSlot {
  Tensor value, grad, first_moment = {}, second_moment = {};
  bool decay = true;         ///< whether weight decay applies: matrices only
  Tensor compute_copy = {};  ///< bf16 copy that matrix products read, written with the value; empty: none
  double rate = 1;           ///< multiplies the learning rate
};

/// norm = ‖g‖₂ over the gradients g of all slots, accumulated in double in a fixed order of summation. norm f64 [1]
/// Throws std::invalid_argument where norm is not f64 [1] or a gradient has not its value's shape and dtype.
void gradient_norm(Tape& tape, const std::vector<AdamWSlot>& slots, const Tensor& norm);

/// The two halves of it, for gradients that lie with several ranks: sums of squares of pieces of the gradients, norm_pieces(…) of them in
/// the order of the slots, and the root of their sum, taken in that order. A slot that is cut at multiples of kNormCut elements has the
/// pieces that it has as a whole.
/// Throws std::invalid_argument where squares is not f64 [norm_pieces], and as gradient_norm does.
constexpr int64_t kNormCut = 1 << 14;
int64_t norm_pieces(Device device, const std::vector<AdamWSlot>& slots);
void gradient_squares(Tape& tape, const std::vector<AdamWSlot>& slots, const Tensor& squares);
void norm_of_squares(Tape& tape, const Tensor& squares, const Tensor& norm);

/// What changes from step to step, for adamw_step to read on its device: learning rate, 1 − β1^step, 1 − β2^step. A captured graph of a
/// step finds the new ones in the same memory. `step` counts from 1; throws std::invalid_argument below it.
std::array<double, 3> adamw_rates(const AdamW& options, double learning_rate, int64_t step);

/// AdamW with decoupled weight decay λ (arXiv:1711.05101, algorithm 2), after clipping by global norm (arXiv:1211.5063, algorithm 1):
///   g ← g · min(1, clip / norm),   m ← β1 m + (1 − β1) g,   v ← β2 v + (1 − β2) g²
///   w ← w − lr (m̂ / (sqrt(v̂) + eps) + λ w),   m̂ = m / (1 − β1^step),   v̂ = v / (1 − β2^step)
/// `rates` f64 [3] holds adamw_rates, `norm` f64 [1] what gradient_norm wrote. clip 0: no clipping. Where norm is not finite, nothing is
/// touched.
/// lr is the learning rate times the slot's `rate`. Throws std::invalid_argument where rates is not f64 [3], norm is not f64 [1] or a
/// gradient or moment has not its value's shape and dtype.
void adamw_step(Tape& tape, const std::vector<AdamWSlot>& slots, const AdamW& options, const Tensor& rates, double clip,
                const Tensor& norm);

}  // namespace saccade
