#pragma once
#include <vector>

#include "kernels/tape.h"

namespace saccade::cuda {

/// The formulas stand in kernels/token_shift.h. x, before, blends f32 or bf16; weights f32 [C], or [B, T, C] in the type of x.
struct TokenShift {
  Tensor x, before;
  std::vector<Tensor> weights;
  bool previous;  ///< whose weight a blend holds
};
void token_shift(Stream stream, const TokenShift& in, const std::vector<Tensor>& y);
/// dy: empty where none arrived. parts f32 [B · run_parts(T), C] for the weights [C].
void token_shift_backward(Stream stream, const TokenShift& in, const std::vector<Tensor>& dy, const GradTarget& dx,
                          const std::vector<GradTarget>& dw, const std::vector<Tensor>& parts);

/// last [B, C] of x [B, T, C]
void last_token(Stream stream, const Tensor& x, const Tensor& last);

}  // namespace saccade::cuda
