#pragma once
#include <vector>

#include "kernels/cuda/runtime.h"
#include "kernels/elementwise.h"
#include "kernels/tensor.h"

namespace saccade::cuda {

/// Products of Avey's enricher and fuser with what follows them in one pass: bf16 with widths divisible by 8, on Hopper. Each
/// returns false where it cannot; then nothing was done.

/// One of Z_r, Z_l, Z_h: columns `column` … of Z for rows `row` … of x; input empty where only the value is kept.
struct EnrichedPart {
  Tensor value, input;
  int64_t row = 0, column = 0;
};
/// value = f(x Wᵀ + bias) for all parts. x [R, D], weight bf16 [m, D], bias f32 [m]; parts[0] is of all rows.
bool enrich_product(int device, Activation f, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    const std::vector<EnrichedPart>& parts);
/// dx (+)= Σ_parts d W[columns of the part], in the rows of the part.
bool enrich_product_backward(int device, const std::vector<EnrichedPart>& parts, const std::vector<Tensor>& d, const Tensor& weight,
                             const Tensor& dx, bool add);

/// y = h + [gated | head] Wᵀ + bias. h, y [Q, D], gated [Q, g], head [Q, ·] or empty, weight bf16 [D, g + ·], bias f32 [D].
bool fuse_product(int device, const Tensor& h, const Tensor& gated, const Tensor& head, const Tensor& weight, const Tensor& bias,
                  const Tensor& y);
}  // namespace saccade::cuda
