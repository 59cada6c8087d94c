#pragma once
#include "kernels/engine/tape.h"
#include "kernels/ops/elementwise/elementwise.h"

namespace saccade::avey {

/// Z = [Z_r | Z_l | Z_h], each contiguous. Z_h is empty when the tail is all of Z.
struct Enriched {
  Tensor r;  ///< [R, tail / 2]   what the contextualizer mixes
  Tensor l;  ///< [Q, tail / 2]   what gates it
  Tensor h;  ///< [Q, m − tail]   what bypasses it
  /// Gradients of the parts are those of f's inputs already: who makes them multiplies by slope'(value).
  Activation slope = Activation::none;
  /// Then, for large weights: [tail / 2] and [tail / 2 + m − tail] without values, whose gradients are Σ rows of the gradients of r, and of
  /// l and h.
  Tensor shift_r = {}, shift = {};
  /// On CUDA f32 [tiles of columns, R], if any: sums of squares of r.
  Tensor squares = {};
};

/// Z = f(x Wᵀ + b) (arXiv:2506.11305, section 2.2.1), computed in row blocks with the activation inside.
/// x [R, D]   weight [m, D]   bias [m]   tail even, 2 <= tail <= m
/// Z_l and Z_h are made for the last Q rows only: in the last layer nobody asks for others.
/// Backward takes over the memory of the outputs' gradients.
/// `slope_by_consumers`: contextualize and fuse alone take the parts; on CUDA they then apply f' where its value is enough.
Enriched enrich(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f, int64_t tail, int64_t Q,
                bool slope_by_consumers = false);

}  // namespace saccade::avey
