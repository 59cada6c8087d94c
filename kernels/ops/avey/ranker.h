#pragma once
#include <string>

#include "kernels/engine/tape.h"
#include "kernels/ops/shared/forced_choice.h"

namespace saccade::avey {

/// The best chosen score (arXiv:2506.11305, section 2.1), or that of the earliest chosen split (released code).
enum class WeightReference { max, first };
/// The current split (arXiv:2506.11305, section 2.1), or the one before it, which lets no token see ahead.
enum class RankerQuery { split, causal };
/// Both throw UsageError for another name.
WeightReference parse_weight_reference(const std::string& name);
RankerQuery parse_ranker_query(const std::string& name);

struct RankerOptions {
  int64_t split = 64;  ///< S, tokens
  int64_t top_k = 7;   ///< k, splits
  bool weighting = true;
  WeightReference reference = WeightReference::max;
  RankerQuery query = RankerQuery::split;
  /// Of split `query` of sequence 0: an earlier split takes the place of the least one chosen, unless it is chosen already.
  ForcedChoice forced = {};
};

struct Ranked {
  Tensor chosen;   ///< i32 [B, N, k]: min(i, k) splits in sequence order, then −1
  Tensor weights;  ///< [B, N, k]: score over the reference score; 0 where none is chosen
  Tensor maxsim;   ///< [B, N, N]: score of split p < i for split i; −inf elsewhere. No gradient
};

/// Which earlier splits belong to the context of each split (arXiv:2506.11305, section 2.1).
///   MaxSim(i, p) = Σ_{a in split i} max_{b in split p} cos(x_a, x_b),   cos of x / (|x| + 1e-8)
///   weight = MaxSim(i, p) / (reference + 1e-8)
/// The k best p < i, ties to the smaller. Gradient flows through the weights (the winner of each max, the cosine, the
/// reference), not through the choice. x [B, T, D], N = ceil(T / S); a last partial split counts with the tokens it has.
/// Throws std::invalid_argument where x has another rank, or S or k is below 1; UsageError where the forced split is not there;
/// DeviceError for one on CUDA.
Ranked rank(Tape& tape, const Tensor& x, const RankerOptions& options);

}  // namespace saccade::avey
