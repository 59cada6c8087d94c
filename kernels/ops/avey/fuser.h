#pragma once
#include "kernels/ops/avey/enricher.h"

namespace saccade::avey {

/// The fuser with the contextualizer's gate, the concatenation and the residual in it
/// (arXiv:2506.11305, section 2.2.2, eq. 2, and section 2.2.3, eq. 3):
///   y = h + [f(Y) * Z_l | Z_h] Oᵀ + c      for the last Q rows of h
/// h [R, D]   Y, z.l [Q, tail / 2]   z.h [Q, m − tail] or empty   weight O [D, tail / 2 + m − tail]   bias c [D]   y [Q, D]
/// Throws std::invalid_argument where a shape differs from these.
Tensor fuse(Tape& tape, const Tensor& h, const Tensor& Y, const Enriched& z, const Tensor& weight, const Tensor& bias, Activation f);

}  // namespace saccade::avey
