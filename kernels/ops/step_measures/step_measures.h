#pragma once
#include "kernels/engine/tape.h"

namespace saccade {

/// What a training step says of itself, kept on the device until somebody asks. No gradients.
/// Source: this project (training steps that are captured as graphs and replayed). Throws nothing of its own.

/// Adds a micro-batch's loss to the step's; the first (`fresh`) begins from 0:
///   sum ← sum + share · loss
/// sum f64 [1]   loss [1], f32 or f64
void add_loss(Tape& tape, const Tensor& sum, const Tensor& loss, double share, bool fresh);

/// norm = NaN unless the loss is finite, so that an update that looks at the norm alone is left out.   norm, loss f64 [1]
void require_finite_loss(Tape& tape, const Tensor& norm, const Tensor& loss);

}  // namespace saccade
