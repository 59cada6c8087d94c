#pragma once
#include <algorithm>
#include <cstdint>

namespace saccade {

/// Number of partial sums of parameter gradients over `tokens` rows of `groups` slices each: one per block along the tokens.
inline int64_t slice_parts(int64_t tokens, int64_t groups) {
  constexpr int64_t kBlocks = 1056;  // eight for each of 132 multiprocessors
  return std::max<int64_t>(1, std::min(tokens, kBlocks / groups));
}

}  // namespace saccade
