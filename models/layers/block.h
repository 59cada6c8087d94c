#pragma once
#include "models/model.h"

namespace saccade {

/// One block of a model, x → block(x, pass), as a segment of the tape: where it recomputes, only x is kept of the block, which
/// runs again in backward on the pass as it was. So `block` captures by value, but for what lives as long as the tape. What is
/// watched is not run twice.
template <class Block>
Tensor run_block(Tape& tape, const Tensor& x, Pass& pass, const Block& block) {
  if (!tape.recomputes() || pass.probe) return block(x, pass);
  const std::vector<Tensor> outputs = tape.segment([x, before = pass, block]() -> std::vector<Tensor> {
    Pass own = before;
    const Tensor y = block(x, own);
    if (own.first_values && !before.first_values) return {y, own.first_values};
    return {y};
  });
  if (outputs.size() > 1) pass.first_values = outputs[1];
  return outputs[0];
}

}  // namespace saccade
