#pragma once
#include "kernels/cuda/runtime.h"
#include "kernels/tape.h"
#include "kernels/wkv/wkv_cpu.h"

namespace saccade::cuda {

constexpr int64_t kMaxWkvWidth = 256;
constexpr int64_t kWkvTile = 16;  ///< tokens between two states that backward starts from

constexpr int64_t wkv_padded(int64_t width) {
  int64_t padded = 16;
  while (padded < width) padded *= 2;
  return padded;
}

/// y and the state after the last token.
void wkv_forward(Stream stream, const cpu::WkvInputs& in, const Tensor& y, const Tensor& state);

/// Gradients; targets, dy and d_state may be empty. Scratch f32: `starts`, states before every tile, and partial sums a sequence of
/// the gradients of the bonus and of a constant decay (a decay per token leaves its own empty).
struct WkvBackward {
  Tensor dy, d_state;
  GradTarget dr, dk, dv, dw_raw, bonus, d_start;
  Tensor starts, bonus_parts, decay_parts;
};
inline Shape wkv_starts_shape(const cpu::WkvInputs& in) {
  const int64_t padded = wkv_padded(in.shape.width);
  return {in.shape.batch, in.shape.heads, (in.shape.length + kWkvTile - 1) / kWkvTile, padded, padded};
}
void wkv_backward(Stream stream, const cpu::WkvInputs& in, const WkvBackward& g);

/// As the op says.
void wkv_weights(Stream stream, const cpu::WkvInputs& in, int64_t sequence, const Tensor& weights);

}  // namespace saccade::cuda
