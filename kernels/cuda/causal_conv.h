#pragma once
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/tape.h"

namespace saccade::cuda {

/// The formulas stand in kernels/causal_conv.h. x, y f32 or bf16 [B, T, C], weight f32 [C, W], bias f32 [C] or empty, f none or silu.
struct CausalConv {
  Tensor x, weight, bias;
  Activation f;
};
/// history [B, W − 1, C] or empty: the inputs before x; it moves on. y: pieces of the channels, one alone for more than kConvTaps taps.
void causal_conv(Stream stream, const CausalConv& in, const Tensor& history, const std::vector<Tensor>& y);

/// Scratch f32. d_pre [B, T, C] for filters of more than kConvTaps taps, else empty; the others empty when not wanted.
constexpr int64_t kConvTaps = 4;
struct CausalConvScratch {
  Tensor d_pre;
  Tensor weight_parts, bias_parts;  ///< [B · run_parts(T), C, W] and [B · run_parts(T), C]
};
/// dy: empty for zeros; widths of the pieces.
void causal_conv_backward(Stream stream, const CausalConv& in, const std::vector<Tensor>& dy, const std::vector<int64_t>& widths,
                          const GradTarget& dx, const GradTarget& d_weight, const GradTarget& d_bias, const CausalConvScratch& scratch);

}  // namespace saccade::cuda
