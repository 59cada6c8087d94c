#pragma once
#include <cstdint>

namespace saccade {

/// For inspection, on the CPU alone: what one query of sequence 0 reads, whatever the scores say.
struct ForcedChoice {
  int64_t head = 0;
  int64_t query = -1;   ///< its position, for Avey its split; −1: nothing is forced
  int64_t choice = -1;  ///< a position, a chunk, a split
  explicit operator bool() const { return query >= 0; }
};

}  // namespace saccade
