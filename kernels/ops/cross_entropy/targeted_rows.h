#pragma once
#include "kernels/engine/tensor.h"

namespace saccade {

/// Which of N rows have a target, in places for M of them. All i32; filled on the device.
struct TargetedRows {
  static constexpr int32_t kNone = -1;    ///< no row, no target, no place
  static constexpr int32_t kNoRoom = -2;  ///< of a row with a target, when all places were taken

  Tensor rows;     ///< [M] those with a target, ascending; behind the last one kNone
  Tensor targets;  ///< [M] their targets; likewise
  Tensor places;   ///< [N] where each row stands in `rows`: kNone without a target, kNoRoom where all M were taken

  explicit operator bool() const { return static_cast<bool>(rows); }
};

}  // namespace saccade
