#pragma once
#include <span>
#include <vector>

#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/tensor.h"
#include "kernels/ops/elementwise/elementwise.h"

namespace saccade::cuda {

/// Products of Avey's enricher and fuser with what follows them in one pass: bf16 with widths divisible by 8 on Hopper, the gate's by 64,
/// on the way back by 128. Each returns false where it cannot; then nothing was done.

/// One of Z_r, Z_l, Z_h: columns `column` … of Z for rows `row` … of x; input empty where only the value is kept.
struct EnrichedPart {
  Tensor value, input;
  int64_t row = 0, column = 0;
};
/// value = f(x Wᵀ + bias) for all parts. x [R, D], weight bf16 [m, D], bias f32 [m]; parts[0] is of all rows. Unless empty, squares gets
/// what row_squares makes of parts[0].
bool enrich_product(int device, Activation f, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    const std::vector<EnrichedPart>& parts, const Tensor& squares);
constexpr int64_t kSquaresTile = 128;
/// squares f32 [columns / 128, rows]: of the rows of x, tile by tile of columns. x bf16.
void row_squares(Stream stream, const Tensor& x, const Tensor& squares);
/// The same for parts of the same rows, without inputs, that begin at multiples of 64 columns; f is none, relu or relu2.
bool enrich_values(int device, Activation f, const Tensor& x, const Tensor& weight, const Tensor& bias, std::span<const EnrichedPart> parts,
                   const Tensor& squares);
/// dx (+)= Σ_parts d W[columns of the part], in the rows of the part.
bool enrich_product_backward(int device, const std::vector<EnrichedPart>& parts, const std::vector<Tensor>& d, const Tensor& weight,
                             const Tensor& dx, bool add);

/// y = h + [gated | head] Wᵀ + bias. h, y [Q, D], gated [Q, g], head [Q, ·] or empty, weight bf16 [D, g + ·], bias f32 [D].
bool fuse_product(int device, const Tensor& h, const Tensor& gated, const Tensor& head, const Tensor& weight, const Tensor& bias,
                  const Tensor& y);

/// What the fuser reads besides h, or its gradients; head may be empty.
struct FusedParts {
  Tensor Y, l, head;
};
/// Of dx = dy W [Q, g + ·]: d.Y = dx * l, d.l = dx * Y * slope'(l), d.head = dx * slope'(head); slope is none, relu or relu2, with the
/// latter z.Y is Y * l. sums f32 [row_sum_parts(Q), g + ·] or empty: of the columns of d.l and d.head over some rows each.
bool fuse_product_backward(int device, const Tensor& dy, const Tensor& weight, const FusedParts& z, const FusedParts& d, Activation slope,
                           const Tensor& sums);
constexpr int64_t row_sum_parts(int64_t rows) { return (rows + 127) / 128 * 4; }

}  // namespace saccade::cuda
