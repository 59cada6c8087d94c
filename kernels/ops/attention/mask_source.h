#pragma once
#include "kernels/ops/attention/attention.h"

namespace saccade {

/// One source that one query of a head does not see.
struct MaskedSource {
  int64_t head = 0, query = 0, source = 0;
};

/// For inspection, on the CPU alone: row t of head h of sequence 0 of attention's result o as it is without source m,
///   o_t = Σ_{j≠m} exp(s_tj) v_j / Σ_{j≠m} exp(s_tj),   s and the visible j as in ScoreOptions; 0 where m is all that t sees
/// written over that row; the others stay. Summed in double. Source: this project.
/// q, k, v, o as in attention(). No gradient. Throws as attention, and UsageError where head or query are not there or the query does not
/// see the source; DeviceError on CUDA.
void mask_source(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& options, const MaskedSource& masked,
                 const Tensor& o);

}  // namespace saccade
