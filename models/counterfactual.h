#pragma once
#include <cstdint>

namespace saccade {

/// One thing that a forward pass of one sequence does otherwise than the model would (docs/inspect.md has the equations).
///   force  query `query` of a head reads element, chunk or split `source`, whatever the scores say. Avey's ranker chooses for whole splits
///          and all layers: layer −1, query the split's number. Chunk −1: no remote chunk.
///   mask   attention: query `query` of a head does not see position `source`. Recurrences: what token `source` writes into the state of a
///          head is left out for all later queries; `query` says nothing. Mamba: of all channels; `head` says nothing.
struct Counterfactual {
  enum class Kind { force, mask };
  Kind kind = Kind::force;
  int64_t layer = 0, head = 0, query = 0, source = 0;
};

}  // namespace saccade
