#pragma once
#include <vector>

#include "kernels/engine/tape.h"
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/shared/column_runs.h"

namespace saccade::cuda {

/// Equations: kernels/ops/causal_conv/causal_conv.h. x, y f32 or bf16 [B, T, C], weight f32 [C, W], bias f32 [C] or empty, f none or silu.
struct CausalConv {
  Tensor x, weight, bias;
  Activation f;
};
/// history [B, W − 1, C] or empty: the inputs before x, updated. y: outputs that split the channels; a single one for more than kConvTaps
/// taps.
void causal_conv(Stream stream, const CausalConv& in, const Tensor& history, const std::vector<Tensor>& y);

/// Workspace f32. d_pre [B, T, C] for filters of more than kConvTaps taps, else empty; the others empty when not wanted.
constexpr int64_t kConvTaps = 4;
/// Partial sums over the tokens of a sequence: a thread of the short filters owns kConvRunTokens of them, a block kRuns runs.
constexpr int64_t kConvRunTokens = 64;
inline int64_t conv_parts(int64_t tokens, int64_t taps) {
  return taps > kConvTaps ? run_parts(tokens) : (tokens + kRuns * kConvRunTokens - 1) / (kRuns * kConvRunTokens);
}
struct CausalConvScratch {
  Tensor d_pre;
  Tensor weight_parts, bias_parts;  ///< [B · conv_parts(T, W), C, W] and [B · conv_parts(T, W), C]
};
/// dy: empty for zeros; widths of the outputs.
void causal_conv_backward(Stream stream, const CausalConv& in, const std::vector<Tensor>& dy, const std::vector<int64_t>& widths,
                          const GradTarget& dx, const GradTarget& d_weight, const GradTarget& d_bias, const CausalConvScratch& scratch);

}  // namespace saccade::cuda
