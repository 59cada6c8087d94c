#pragma once
#include <cstdint>

namespace saccade {

/// slope = 2^(−8 numerator / denominator) of ALiBi for head h (0-based) of H.
struct AlibiSlope {
  int64_t numerator, denominator;
};

/// As the paper writes it (arXiv:2108.12409, section 3): 2^(−8(h+1)/H). `released`: as in the code its authors released, which differs
/// where H is no power of two: with n the greatest power of two below H, the slopes of n heads, then every second one of 2n heads.
constexpr AlibiSlope alibi_slope_of(int64_t h, int64_t heads, bool released) {
  int64_t n = 1;
  while (2 * n <= heads) n *= 2;
  if (!released || n == heads) return {h + 1, heads};
  return h < n ? AlibiSlope{h + 1, n} : AlibiSlope{2 * (h - n) + 1, 2 * n};
}

}  // namespace saccade
