#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/tensor.h"
#include "kernels/ops/avey/layout.h"

namespace saccade::cuda {

/// h [rows, D] = padding zeros, weights · chosen splits, own tokens. x, h f32 or bf16; chosen i32, weights f32 [B, N, k], both
/// empty without chosen splits.
void contexts(Stream stream, const avey::ContextLayout& layout, const Tensor& x, const Tensor& chosen, const Tensor& weights,
              const Tensor& h);
void contexts_backward_x(Stream stream, const avey::ContextLayout& layout, const Tensor& chosen, const Tensor& weights, const Tensor& dh,
                         const Tensor& dx, bool add);
void contexts_backward_weights(Stream stream, const avey::ContextLayout& layout, const Tensor& x, const Tensor& chosen, const Tensor& dh,
                               const Tensor& d_weights, bool add);

/// A rectangle of every context: positions first_position … first_position + positions − 1 of contexts first_context, ….
struct Rectangles {
  avey::ContextLayout layout;
  int64_t first_context = 0, contexts = 0, first_position = 0, positions = 0;
  bool shifted = false;    ///< position 0 is the first row that exists, not the first of A
  bool returning = false;  ///< only rows that come back: the own ones, or all with the padding from context 0
  bool own_only = false;   ///< with `returning`: rows are counted from the first own row
};

/// rectangles [contexts, positions, W] (+)= rows [·, W], zero where there is no row.
void rows_to_rectangles(Stream stream, const Rectangles& r, const Tensor& rows, const Tensor& rectangles, bool add);
/// rows (+)= rectangles for the rows that the rectangles hold; padding from context 0 only.
void rectangles_to_rows(Stream stream, const Rectangles& r, const Tensor& rectangles, const Tensor& rows, bool add);
/// padding rows [pad_rows, W] of `rows` (+)= their sum over all contexts, in order.
void padding_from_rectangles(Stream stream, const Rectangles& r, const Tensor& rectangles, const Tensor& rows, bool add);

}  // namespace saccade::cuda
