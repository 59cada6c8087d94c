#pragma once
#include "kernels/tape.h"

namespace saccade::cuda {

/// y = RMS(x ∘ silu(z)) ∘ gain (gate first) or RMS(x) ∘ gain ∘ silu(z), the mean square in each of `groups` slices of the gain.
/// x, z, y f32 or bf16 [..., D], gain f32 [D].
struct GatedNorm {
  Tensor x, z, gain;
  int64_t groups;
  bool gate_first;
  double eps;
};
void gated_norm(Stream stream, const GatedNorm& in, const Tensor& y);
/// parts f32 [slice_parts(tokens, groups), D], empty when d_gain is not wanted.
void gated_norm_backward(Stream stream, const GatedNorm& in, const Tensor& dy, const GradTarget& dx, const GradTarget& dz,
                         const GradTarget& d_gain, const Tensor& parts);

}  // namespace saccade::cuda
