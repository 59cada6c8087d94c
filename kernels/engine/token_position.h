#pragma once
#include "kernels/engine/tensor.h"

namespace saccade {

/// Position of the first of some tokens in a sequence (incremental decoding, prefill): the tokens seen before it.
struct TokenPosition {
  int64_t first = 0;
  /// i32 [1] with the same number. Kernels on a GPU read this one when it is there, so that one captured graph (cuda::CapturedGraph) serves
  /// every position; launch sizes do not depend on it.
  Tensor on_device = {};
};

}  // namespace saccade
