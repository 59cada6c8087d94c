#pragma once
#include "kernels/ops/mamba1/mamba1_scan.h"

namespace saccade::cpu {

/// The selective scan (arXiv:2312.00752, section 3.3) with a decay per channel and state, in chunks of kScanChunk tokens: several channels
/// side by side in a vector, state after state, so that a state stays in a register through a chunk.
constexpr int64_t kScanChunk = 32;
constexpr int64_t kScanChannels = 64;  ///< per task

/// States at the start of every chunk, [B, chunks, N, D].
Shape scan_starts_shape(const Mamba1Scan& in);

/// y, `starts`, and end [B, D, N] unless it is empty.
template <class T>
void selective_scan(const Mamba1Scan& in, const Tensor& y, const Tensor& starts, const Tensor& end);

/// Gradients; targets may be empty. Workspace: `pair_parts` for B and C [tasks per sequence, B, T, 2 N], `parts` [B, D, N + 2] for A_log,
/// bias and D. d_end and d_start may be empty; d_start is overwritten.
struct ScanGradients : Mamba1Gradients {
  Tensor pair_parts, parts;
};
Shape scan_pair_parts_shape(const Mamba1Scan& in);
template <class T>
void selective_scan_backward(const Mamba1Scan& in, const Tensor& starts, const ScanGradients& out);

}  // namespace saccade::cpu
