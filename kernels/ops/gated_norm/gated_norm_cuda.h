#pragma once
#include "kernels/engine/tape.h"

namespace saccade::cuda {

/// y = RMS(x ∘ silu(z)) ∘ w (gate first) or RMS(x) ∘ w ∘ silu(z), w = `weight`, the mean square in each of `groups` slices of D.
/// x, z, y f32 or bf16 [..., D], weight f32 [D].
struct GatedNorm {
  Tensor x, z, weight;
  int64_t groups;
  bool gate_first;
  double eps;
};
void gated_norm(Stream stream, const GatedNorm& in, const Tensor& y);
/// parts f32 [slice_parts(tokens, groups), D], empty when d_weight is not wanted.
void gated_norm_backward(Stream stream, const GatedNorm& in, const Tensor& dy, const GradTarget& dx, const GradTarget& dz,
                         const GradTarget& d_weight, const Tensor& parts);

}  // namespace saccade::cuda
