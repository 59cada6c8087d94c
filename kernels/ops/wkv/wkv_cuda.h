#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/plain.h"
#include "kernels/engine/tape.h"
#include "kernels/ops/shared/segments_cuda.h"
#include "kernels/ops/wkv/wkv_cpu.h"

namespace saccade::cuda {

constexpr int64_t kMaxWkvWidth = 256;
constexpr int64_t kWkvTile = 16;  ///< tokens between two states saved for backward

/// Whether products between tokens run on tensor cores, in chunks of kWkvTile tokens.
inline bool wkv_in_chunks(const cpu::WkvInputs& in) {
  return tensor_core_type(in.r.dtype()) && (in.shape.width == 32 || in.shape.width == 64);
}

constexpr int64_t wkv_padded(int64_t width) {
  int64_t padded = 16;
  while (padded < width) padded *= 2;
  return padded;
}

inline int64_t wkv_tiles(const cpu::WkvInputs& in) { return (in.shape.length + kWkvTile - 1) / kWkvTile; }

/// Segments per head.
inline int64_t wkv_segments(const cpu::WkvInputs& in) {
  return wkv_in_chunks(in) ? segments_of(wkv_tiles(in), in.shape.sequences(), {4, 16}) : 1;
}
/// With several segments per head, f32: the state at the start of each, followed by the decay of the one before. Else empty.
inline Tensor wkv_carried(Tape& t, const cpu::WkvInputs& in) {
  const int64_t segments = wkv_segments(in), n = in.shape.width;
  return segments > 1 ? t.empty({in.shape.sequences(), segments, n, n + 1}, DType::f32) : Tensor();
}

/// y, the state after the last token, and `carried`.
void wkv_forward(Stream stream, const cpu::WkvInputs& in, const Tensor& carried, const Tensor& y, const Tensor& state);

/// Gradients; targets, dy and d_state may be empty. Workspace: `starts`, states before every tile; in chunks also `d_states`, the gradients
/// of the states after them, both bf16, else f32; partial sums f32 of the gradients of the bonus and of a constant decay (decay_parts
/// is empty with a decay per token); `d_carried` as `carried`, which the forward pass wrote.
struct WkvBackward {
  Tensor dy, d_state;
  GradTarget dr, dk, dv, dw_raw, bonus, d_start;
  Tensor starts, d_states, bonus_parts, decay_parts, carried, d_carried;
};
inline Shape wkv_starts_shape(const cpu::WkvInputs& in) {
  const int64_t padded = wkv_padded(in.shape.width);
  return {in.shape.batch, in.shape.heads, wkv_tiles(in), padded, padded};
}
inline Shape wkv_parts_shape(const cpu::WkvInputs& in) {
  if (wkv_in_chunks(in)) return {in.shape.batch, in.shape.heads, wkv_tiles(in), in.shape.width};
  return {in.shape.batch, in.shape.heads, in.shape.width};
}
void wkv_backward(Stream stream, const cpu::WkvInputs& in, const WkvBackward& g);

/// wkv_backward for wkv_in_chunks.
void wkv_chunk_backward(Stream stream, const cpu::WkvInputs& in, const WkvBackward& g);

/// Read weights of some sequences, f32 [sequences · H, T, T] (kernels/ops/wkv/wkv.h).
void wkv_weights(Stream stream, const cpu::WkvInputs& in, const Sequences& sequences, const Tensor& weights);

}  // namespace saccade::cuda
