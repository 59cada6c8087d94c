#pragma once
#include <string>

#include "kernels/tape.h"
#include "kernels/token_position.h"

namespace saccade {

enum class QkNorm { none, l2, rms };
QkNorm parse_qk_norm(const std::string& name);

struct HeadOptions {
  QkNorm norm = QkNorm::none;
  double rotary_base = 0;       ///< 0: no rotary positions
  TokenPosition position = {};  ///< of row 0 (decoding)
};

/// What happens to queries and keys before the score (BC 2, specification 1.2, 1.3): norm over the head, then rotary.
///   l2:  x / sqrt(Σx² + 1e-12)       rms: x / sqrt(mean(x²) + 1e-5) · gain
///   rotary: pair (i, i + d/2) turned by t · base^(−2i/d)
/// x [B, T, H, d]   gain [d] for rms, else empty
Tensor prepare_heads(Tape& tape, const Tensor& x, const Tensor& gain, const HeadOptions& options);

}  // namespace saccade
