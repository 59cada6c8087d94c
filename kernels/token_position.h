#pragma once
#include "kernels/tensor.h"

namespace saccade {

/// Where a piece of a sequence in progress begins: tokens seen before its first one.
struct TokenPosition {
  int64_t first = 0;
  /// i32 [1] with the same number. Kernels on a GPU read this one when it is there, so that a step recorded once (cuda::Recorded)
  /// serves every position; sizes of launches do not depend on it.
  Tensor on_device = {};
};

}  // namespace saccade
