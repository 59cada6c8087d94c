#pragma once
#include <array>
#include <vector>

#include "kernels/engine/tape.h"

namespace saccade {

struct Muon {
  double momentum = 0.95;
  bool nesterov = true;
  int64_t newton_schulz_steps = 5;
  bool match_rms_adamw = false;  ///< how the learning rate follows a matrix's shape, see muon_ratio
  double weight_decay = 0.1, eps = 1e-7;
  std::array<double, 3> coefficients = {3.4445, -4.7750, 2.0315};
};

/// One matrix with its gradient and momentum, all of one shape [n, k] and dtype.
struct MuonSlot {
  Tensor value, grad, momentum;
  double rate = 1;           ///< multiplies the learning rate
  Tensor compute_copy = {};  ///< bf16 copy that matrix products read, written with the value; empty: none
};

/// What the learning rate is multiplied by for a matrix [n, k]: sqrt(max(1, n / k)), or 0.2 sqrt(max(n, k)) with match_rms_adamw, which
/// gives updates the root mean square of AdamW's (arXiv:2502.16982, section 2.2).
double muon_ratio(const Muon& options, const Shape& matrix);

/// Muon (K. Jordan et al. 2024; arXiv:2502.16982, section 2.1) as torch.optim.Muon, after clipping by global norm
/// (kernels/ops/adamw/adamw.h):
///   g ← g · min(1, clip / norm),   m ← m + (1 − μ)(g − m),   u = g + μ (m − g) with nesterov, else m
///   X ← u / max(‖u‖, eps),   `newton_schulz_steps` times  X ← a X + (b A + c A²) X,  A = X Xᵀ
///   w ← w (1 − lr λ) − lr · ratio · X
/// Tall matrices use X (b A + c A²) with A = Xᵀ X, the same in exact arithmetic. The iteration is in the dtype of the value on the CPU; on
/// CUDA in bf16 with f32 sums, matrices of one shape at once.
/// `learning_rate` f64 [1], `norm` f64 [1] what gradient_norm wrote. clip 0: no clipping. Where norm is not finite, nothing is touched.
/// Throws std::invalid_argument where a value is no matrix, or a tensor has not the shape or dtype stated.
void muon_step(Tape& tape, const std::vector<MuonSlot>& slots, const Muon& options, const Tensor& learning_rate, double clip,
               const Tensor& norm);

}  // namespace saccade
