#pragma once
#include "kernels/engine/tape.h"
#include "kernels/ops/avey/layout.h"
#include "kernels/ops/avey/ranker.h"

namespace saccade::avey {

/// For inspection, on the CPU alone: contextualized features Y (contextualize) in which the own tokens of context (0, i) take in nothing of
/// the rows that split p has there:
///   Y_t = y_t − Σ_{j in p} A_tj cos_tj z_j,   A_tj z_j when not `dynamic`
/// Where p is not among the chosen splits of i that is Y itself. Y of all rows, or of the own rows [B·T, r] (`own_only`). No gradient.
/// Source: this project, of arXiv:2506.11305, section 2.2.2, eq. 2. Throws UsageError where p is no split before i; DeviceError on CUDA.
struct MaskedSplit {
  int64_t i = 0, p = 0;
};
Tensor without_split(Tape& tape, const Tensor& Y, const Tensor& Z, const Tensor& A, const Ranked& ranked, const ContextLayout& layout,
                     const MaskedSplit& masked, bool dynamic);

}  // namespace saccade::avey
