#pragma once
#include "kernels/engine/tape.h"
#include "kernels/ops/elementwise/elementwise.h"

namespace saccade::avey {

/// Z = [Z_r | Z_l | Z_h], each contiguous. Z_h is empty when the tail is all of Z.
struct Enriched {
  Tensor r;  ///< [R, tail / 2]   what the contextualizer mixes
  Tensor l;  ///< [Q, tail / 2]   what gates it
  Tensor h;  ///< [Q, m − tail]   what bypasses it
};

/// The enricher (arXiv:2506.11305, section 2.2.1), computed in row blocks with the activation inside:
///   Z = f(x Wᵀ + b)
/// x [R, D]   weight [m, D]   bias [m]   tail even, 2 <= tail <= m
/// Z_l and Z_h are made for the last Q rows only: in the last layer nobody asks for others.
/// Backward takes over the memory of the outputs' gradients.
/// Throws std::invalid_argument where a shape differs from these.
Enriched enrich(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f, int64_t tail, int64_t Q);

}  // namespace saccade::avey
