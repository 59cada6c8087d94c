#pragma once
#include "kernels/engine/tape.h"

namespace saccade::cuda {

/// out = (y + (Σ_head r ∘ k ∘ r_k) v) ∘ g; f32 or bf16 [..., C], r_k f32 [H, N].
struct Rwkv7Output {
  Tensor y, r, k, v, g, r_k;
};
void rwkv7_output(Stream stream, const Rwkv7Output& in, const Tensor& out);

struct Rwkv7OutputTargets {
  GradTarget y, r, k, v, g, r_k;
};
/// parts f32 [slice_parts(tokens, H), H, N].
void rwkv7_output_backward(Stream stream, const Rwkv7Output& in, const Tensor& d_out, const Rwkv7OutputTargets& to, const Tensor& parts);

}  // namespace saccade::cuda
