#pragma once
#include "kernels/ops/mask_value/mask_value.h"
#include "models/model.h"

namespace saccade {

/// Values v [B, T, H, N] that a recurrence of layer `layer` writes into its state: v itself, or without that of the token whose write the
/// pass's counterfactual masks.
inline Tensor without_masked_write(Tape& tape, const Tensor& v, const Pass& pass, int64_t layer) {
  const auto masked = pass.take(layer, Counterfactual::Kind::mask, v.dim(2));
  return masked ? mask_value(tape, v, masked->head, masked->source) : v;
}

}  // namespace saccade
