#pragma once
#include <algorithm>

#include "kernels/ops/mamba1/mamba1_scan.h"

namespace saccade::cuda {

/// Layout of a scan of N states in a block: `lanes` lanes hold a channel, `states` states each, and `tile` tokens are in shared memory at a
/// time.
struct ScanWidths {
  int lanes, states, tile;
  constexpr int channels() const { return 128 / lanes; }  ///< per block
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

/// Few sequences leave most of a GPU idle. So they are cut into segments of `tokens` tokens, whole tiles; the last segment may be shorter.
/// Every segment is scanned from zeros; its end state and its whole decay e^{A ΣΔ} give the state at the next segment's start; then all
/// segments are scanned in parallel from their true starts (the parallel scan of arXiv:2312.00752, section 3.3, over segments).
struct ScanSegments {
  int64_t count, tokens;
};
inline ScanSegments scan_segments(const Mamba1Scan& in) {
  constexpr int64_t kBlocks = 792, kLeastTokens = 128;  // six for each of 132 multiprocessors
  const ScanWidths w = scan_widths(in.b.dim(2));
  const int64_t length = in.u.dim(1), workspace = kBlocks / (in.u.dim(0) * scan_blocks(in.u.dim(2), w));
  const int64_t wanted = std::max<int64_t>(1, std::min(workspace, length / kLeastTokens));
  const int64_t tiles = (length + wanted * w.tile - 1) / (wanted * w.tile), tokens = tiles * w.tile;
  return {(length + tokens - 1) / tokens, tokens};
}

/// The states at the segments' starts (or their gradients at their ends) f32 [B, segments, D, N], and workspace, ΣΔ of each
/// f32 [B, segments, D]. Both empty where there is one segment.
struct SegmentStates {
  Tensor states, steps;
};
inline SegmentStates segment_states(Tape& tape, const Mamba1Scan& in) {
  const int64_t batch = in.u.dim(0), width = in.u.dim(2), segments = scan_segments(in).count;
  if (segments == 1) return {};
  return {tape.empty({batch, segments, width, in.b.dim(2)}, DType::f32), tape.empty({batch, segments, width}, DType::f32)};
}

/// y, `segments`, and, unless it is empty, the state after the last token, [B, D, N].
void selective_scan(Stream stream, const Mamba1Scan& in, const SegmentStates& segments, const Tensor& y, const Tensor& end);

inline Shape scan_starts_shape(const Mamba1Scan& in) {
  const ScanWidths w = scan_widths(in.b.dim(2));
  return {in.u.dim(0), (in.u.dim(1) + w.tile - 1) / w.tile, in.u.dim(2), w.padded()};
}
inline Shape scan_pair_parts_shape(const Mamba1Scan& in) {
  const ScanWidths w = scan_widths(in.b.dim(2));
  return {scan_blocks(in.u.dim(2), w), in.u.dim(0), in.u.dim(1), 2 * w.padded()};
}
inline Shape scan_parts_shape(const Mamba1Scan& in) {
  return {in.u.dim(0) * scan_segments(in).count, in.u.dim(2), scan_widths(in.b.dim(2)).padded() + 2};
}

/// Gradients; targets, d_end and d_start may be empty, d_start is overwritten. `segment_starts` as the forward pass wrote them.
/// Workspace f32: gradients at the segments' ends, the states before every tile, partial sums of dB and dC over channels and those of
/// the parameters over tokens.
struct ScanBackward : Mamba1Gradients {
  Tensor segment_starts;
  SegmentStates segment_ends;
  Tensor starts, pair_parts, parts;
};
void selective_scan_backward(Stream stream, const Mamba1Scan& in, const ScanBackward& out);

/// Read weights, f32 [sequences · channels, T, T] (kernels/ops/mamba1/mamba1_scan.h).
void mamba1_weights(Stream stream, const Mamba1Scan& in, const Sequences& sequences, const std::vector<int64_t>& channels,
                    const Tensor& weights);

}  // namespace saccade::cuda
