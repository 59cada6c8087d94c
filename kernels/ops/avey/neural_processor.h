#pragma once
#include "kernels/ops/avey/layout.h"
#include "kernels/ops/elementwise/elementwise.h"

namespace saccade::avey {

/// Parameters of one layer's neural processor: U [m, D], b [m], A [C, C], O [D, tail / 2 + m − tail], c [D].
struct ProcessorWeights {
  Tensor U, b, A, O, c;
};

struct ProcessorOptions {
  Activation enricher = Activation::relu2;       ///< g
  Activation contextualizer = Activation::none;  ///< f
  int64_t tail = 0;                              ///< features that are contextualized or gate: even, 2 <= tail <= m
  bool dynamic = true;                           ///< A is multiplied by cosines
  bool own_only = false;                         ///< y for the own rows [B·T, D] only (last layer)
};

struct Processed {
  Tensor y;    ///< [layout.rows(), D], or [B·T, D]
  Tensor Z_r;  ///< [layout.rows(), tail / 2]: what the contextualizer mixed. No gradient
};

/// Enricher, contextualizer and fuser with the residual as one op (arXiv:2506.11305, sections 2.2.1 to 2.2.3):
///   [Z_r | Z_l | Z_h] = g(x Uᵀ + b),   Y = (tril(A) * Cos(Z_r)) Z_r   (no cosines where not `dynamic`)
///   y = h + [f(Y) * Z_l | Z_h] Oᵀ + c
/// x (the norm of h), h [layout.rows(), D] of one dtype, weights of accumulation_dtype(x). On CUDA the stages apply each other's slopes and
/// gates, so their gradients are not those of the stages by themselves (enricher.h, contextualizer.h, fuser.h).
/// Throws std::invalid_argument where a shape differs from these.
Processed neural_processor(Tape& tape, const Tensor& h, const Tensor& x, const ProcessorWeights& weights, const ContextLayout& layout,
                           const ProcessorOptions& options);

}  // namespace saccade::avey
