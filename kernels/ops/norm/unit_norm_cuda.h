#pragma once
#include "kernels/engine/tape.h"

namespace saccade::cuda {

/// y = z / max(sqrt(Σz² + eps), floor) over slices of z = x ∘ scale; x, y f32 or bf16 [..., N], scale f32 [H, N] or empty for 1.
struct UnitNorm {
  Tensor x, scale;
  double eps, floor;
};
void unit_norm(Stream stream, const UnitNorm& in, const Tensor& y);
/// parts f32 [slice_parts(tokens, H), H, N], empty when d_scale is not wanted.
void unit_norm_backward(Stream stream, const UnitNorm& in, const Tensor& dy, const GradTarget& dx, const GradTarget& d_scale,
                        const Tensor& parts);

}  // namespace saccade::cuda
