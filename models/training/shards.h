#pragma once
#include <functional>
#include <vector>

#include "models/model.h"
#include "models/optimizers/registry.h"

namespace saccade {

/// What each rank's optimizer updates (ZeRO stage 1, arXiv:1910.02054, section 5.1): the elements of all parameters in their order, cut
/// into as equal parts as cuts allow. Cuts are where parameters begin and at multiples of kNormCut elements in them, but not in one that
/// must be `whole`. Together the shards are every parameter once, in the order of ranks; a shard has one piece of a parameter at most. A
/// rank may get nothing of a small model.
std::vector<std::vector<Piece>> cut_into_shards(const std::vector<Parameter>& parameters, const std::function<bool(size_t)>& whole,
                                                int ranks);

/// Elements of a tensor in the shape of the piece's parameter: itself where the piece is whole, else [end − begin]. Shares memory.
Tensor part_of(const Tensor& tensor, const Piece& piece);

}  // namespace saccade
