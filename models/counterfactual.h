#pragma once
#include <cstdint>

namespace saccade {

/// One thing that a forward pass of one sequence does otherwise than the model would (docs/inspect.md has the equations).
///   force  query `query` of a head reads element, chunk or split `source`, whatever the scores say. Avey's ranker chooses for whole splits
///          and all layers: layer −1, query the split's number. Chunk −1: no remote chunk.
///   mask   attention: query `query` of a head does not see position `source`; recurrences: the write of token `source` is left out for all
///          later queries (Mamba: in all channels); Avey: in a layer the tokens of split `query` take in nothing of split `source`.
struct Counterfactual {
  enum class Kind { force, mask };
  Kind kind = Kind::force;
  int64_t layer = 0, head = 0, query = 0, source = 0;
};

}  // namespace saccade
