#pragma once
#include <cstdint>

namespace saccade {

/// Sequences of a batch that stand next to each other; one where only its number is given.
struct Sequences {
  int64_t first, count;

  Sequences(int64_t sequence, int64_t how_many = 1) : first(sequence), count(how_many) {}
  bool are_in(int64_t batch) const { return first >= 0 && count >= 1 && first + count <= batch; }
};

}  // namespace saccade
