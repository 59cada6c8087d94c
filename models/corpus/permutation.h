#pragma once
#include <bit>
#include <cstdint>

#include "kernels/engine/random.h"

namespace saccade {

/// A random permutation of 0 … n-1 that needs no memory: a balanced Feistel network (Luby and Rackoff 1988) over the next even
/// power of two, with Philox as round function, walked until the value lies below n (Black and Rogaway 2002, cycle walking).
class Permutation {
 public:
  /// `stream` separates purposes, `epoch` gives a new order under the same seed.
  Permutation(uint64_t n, uint64_t seed, std::string_view stream, uint64_t epoch)
      : n_(n), half_bits_((static_cast<int>(std::bit_width(n > 1 ? n - 1 : 1)) + 1) / 2), random_(seed, stream), epoch_(epoch) {}

  uint64_t operator()(uint64_t index) const {
    do index = encrypt(index);
    while (index >= n_);
    return index;
  }

 private:
  static constexpr uint64_t kRounds = 6;

  uint64_t encrypt(uint64_t x) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = x >> half_bits_, right = x & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      // Halves have at most 32 bits: the counter is half, then round and epoch above it.
      const uint64_t key = random_.bits((right ^ (round << 32)) + (epoch_ << 35));
      const uint64_t mixed = left ^ (key & mask);
      left = right;
      right = mixed;
    }
    return (left << half_bits_) | right;
  }

  uint64_t n_;
  int half_bits_;
  Random random_;
  uint64_t epoch_;
};

}  // namespace saccade
