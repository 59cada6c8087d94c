#pragma once
#include "kernels/engine/tape.h"
#include "kernels/ops/avey/layout.h"
#include "kernels/ops/elementwise/elementwise.h"

namespace saccade::avey {

/// What the fuser multiplies Y by, and where the product goes.
struct Gate {
  Tensor factor, product;  ///< Z_l and Y * Z_l, of Y's shape
  bool alone = false;      ///< Y itself is not kept: where Z_l is zero nobody asks for it, elsewhere the product tells
};
/// For f(Y) * Z_l, with the slope that goes with gradients of Z_l; empty where the fuser has to do it.
Gate gate_with(Tape& tape, const Tensor& l, Activation f, Activation slope);

/// What the neighbours of the contextualizer leave to it, on CUDA; see Enriched.
struct FusedNeighbours {
  Activation slope = Activation::none;  ///< d_Z is multiplied by slope'(Z)
  Gate gate;                            ///< applied on the way; its gradients are the fuser's
  Tensor squares, shift;                ///< Enriched::squares; Enriched::shift_r
};

/// Y = (tril(A) * Cos(Z)) Z in every context (arXiv:2506.11305, section 2.2.2, eq. 2 without the gate, which is the fuser's):
///   cos_tj = z_t · z_j / (sqrt(|z_t|² + 1e-8) sqrt(|z_j|² + 1e-8)),   y_t = Σ_{j <= t} A_tj cos_tj z_j
/// With `dynamic` off, y_t = Σ_{j <= t} A_tj z_j. Only the causal half is computed, in row blocks: nothing of size C x C per
/// context is kept.
/// Z [layout.rows(), r]   A [C, C], rows and columns are positions in the context; the upper half takes no gradient
/// Y for all rows, or for the own rows [B·T, r] only (last layer). With a gate that stands alone the product is in
/// Y's place; its gradient is still Y's.
Tensor contextualize(Tape& tape, const Tensor& Z, const Tensor& A, const ContextLayout& layout, bool dynamic, bool own_only,
                     const FusedNeighbours& neighbours = {});

}  // namespace saccade::avey
