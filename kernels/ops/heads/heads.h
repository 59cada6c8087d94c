#pragma once
#include <string>

#include "kernels/engine/tape.h"
#include "kernels/engine/token_position.h"

namespace saccade {

enum class QkNorm { none, l2, rms };
/// "none", "l2", "rms". Throws UsageError on another name.
QkNorm parse_qk_norm(const std::string& name);

struct HeadOptions {
  QkNorm norm = QkNorm::none;
  double rotary_base = 0;       ///< 0: no rotary positions
  TokenPosition position = {};  ///< of row 0 (decoding); one for all sequences where gradients are wanted
};

/// Queries and keys before the score (arXiv:2505.18522, sections 3.1.2 and 3.2.3): a norm over the head, then rotary positions
/// (arXiv:2104.09864, section 3.2.2, with the pairs of the GPT-NeoX code).
///   l2:  z = x / sqrt(Σ x² + 1e-12) (arXiv:2010.04245)       rms: z = x / sqrt(mean(x²) + 1e-5) ∘ w, w = `weight` (arXiv:1910.07467)
///   rotary: the pair (z_i, z_{i+d/2}) rotated by the angle t · base^(−2i/d)
/// x, y [B, T, H, d] of one dtype   weight [d] of accumulation_dtype(x) for rms, else empty. Without norm and rotary positions y is x
/// itself. Throws UsageError where x has not rank 4, weight is there without rms or missing with it or not of d elements, or d is odd with
/// rotary positions; DeviceError on CUDA for d above 512.
Tensor prepare_heads(Tape& tape, const Tensor& x, const Tensor& weight, const HeadOptions& options);

}  // namespace saccade
