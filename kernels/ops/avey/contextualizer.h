#pragma once
#include "kernels/engine/tape.h"
#include "kernels/ops/avey/layout.h"
#include "kernels/ops/elementwise/elementwise.h"

namespace saccade::avey {

/// Y = (tril(A) * Cos(Z)) Z in every context (arXiv:2506.11305, section 2.2.2, eq. 2 without the gate, which is the fuser's):
///   cos_tj = z_t · z_j / (sqrt(|z_t|² + 1e-8) sqrt(|z_j|² + 1e-8)),   y_t = Σ_{j <= t} A_tj cos_tj z_j
/// With `dynamic` off, y_t = Σ_{j <= t} A_tj z_j. Only the causal half is computed, in row blocks: nothing of size C x C per
/// context is kept.
/// Z [layout.rows(), r]   A [C, C], rows and columns are positions in the context; the upper half takes no gradient
/// Y for all rows, or for the own rows [B·T, r] only (last layer).
/// Throws std::invalid_argument where a shape differs from these.
Tensor contextualize(Tape& tape, const Tensor& Z, const Tensor& A, const ContextLayout& layout, bool dynamic, bool own_only);

}  // namespace saccade::avey
