#pragma once
#include "kernels/mamba1_scan.h"

namespace saccade::cuda {

/// How a block shares a scan of N states: `lanes` lanes hold a channel, `states` states each, and go through `tile` tokens between
/// two looks at memory.
struct ScanWidths {
  int lanes, states, tile;
  constexpr int channels() const { return 128 / lanes; }  ///< of a block
  constexpr int padded() const { return lanes * states; }
};
constexpr ScanWidths kScanWidths[] = {{4, 4, 16}, {16, 4, 8}, {32, 4, 8}, {32, 32, 1}};
constexpr int64_t kMaxScanStates = 1024;

constexpr ScanWidths scan_widths(int64_t states) {
  for (const ScanWidths& w : kScanWidths)
    if (states <= w.padded()) return w;
  return {};
}

constexpr int64_t scan_blocks(int64_t width, const ScanWidths& w) { return (width + w.channels() - 1) / w.channels(); }

/// All three forms of the decay; y and, unless it is empty, the state after the last token, [B, D, N].
void selective_scan(Stream stream, const Mamba1Scan& in, const Tensor& y, const Tensor& end);

inline Shape scan_starts_shape(const Mamba1Scan& in) {
  const ScanWidths w = scan_widths(in.b.dim(2));
  return {in.u.dim(0), (in.u.dim(1) + w.tile - 1) / w.tile, in.u.dim(2), w.padded()};
}
inline Shape scan_pair_parts_shape(const Mamba1Scan& in) {
  const ScanWidths w = scan_widths(in.b.dim(2));
  return {scan_blocks(in.u.dim(2), w), in.u.dim(0), in.u.dim(1), 2 * w.padded()};
}
inline Shape scan_shared_parts_shape(const Mamba1Scan& in) {
  return {scan_blocks(in.u.dim(2), scan_widths(in.b.dim(2))), in.u.dim(0), in.u.dim(1)};
}
inline Shape scan_parts_shape(const Mamba1Scan& in) { return {in.u.dim(0), in.u.dim(2), scan_widths(in.b.dim(2)).padded() + 2}; }

/// Gradients; targets, d_end and d_start may be empty, d_start is overwritten. Scratch f32: the states before every tile, partial
/// sums of dB and dC over channels and those of the parameters over tokens; with a shared decay the same of its gradients, [B, 2].
struct ScanBackward {
  Tensor dy, d_end;
  GradTarget u, dt, z, b, c, skip, dt_bias, a_log, shared_dt, shared_bias;
  Tensor d_start;
  Tensor starts, pair_parts, parts;
  Tensor shared_parts, shared_sums;
};
void selective_scan_backward(Stream stream, const Mamba1Scan& in, const ScanBackward& out);

/// As the op says; `channel` is written to weights [T, T].
void mamba1_weights(Stream stream, const Mamba1Scan& in, int64_t sequence, int64_t channel, const Tensor& weights);

}  // namespace saccade::cuda
