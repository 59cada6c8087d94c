#pragma once
#include <vector>

#include "kernels/engine/tape.h"

namespace saccade::cuda {

/// Equations: kernels/ops/token_shift/token_shift.h. x, before, blends f32 or bf16; weights f32 [C], or [B, T, C] in the dtype of x.
struct TokenShift {
  Tensor x, before;
  std::vector<Tensor> weights;
  bool previous;  ///< ShiftWeight::previous
};
void token_shift(Stream stream, const TokenShift& in, const std::vector<Tensor>& y);
/// dy: empty for zeros. parts f32 [B · run_parts(T), C] for the weights [C].
void token_shift_backward(Stream stream, const TokenShift& in, const std::vector<Tensor>& dy, const GradTarget& dx,
                          const std::vector<GradTarget>& dw, const std::vector<Tensor>& parts);

/// last [B, C] of x [B, T, C]
void last_token(Stream stream, const Tensor& x, const Tensor& last);

}  // namespace saccade::cuda
