#pragma once
#include "kernels/engine/tape.h"

namespace saccade {

/// What a map of weights says about where queries read, summed up where the map is. No gradients.
/// weights w [H, T, T], of one sequence or of several, one after the other: row t is what query t reads from each token; entries behind t
/// are not looked at.
/// Source: this project (attention distance and entropy as arXiv:2505.18522, section 3, plots them, for reads of every mixer).
/// Throws std::invalid_argument (both) unless w has rank 3 and square maps.

/// Sums over a head's queries → f64 [H, 2]:
///   distance_h = Σ_t Σ_{j ≤ t} w_htj (t − j)
///   outside_h  = Σ_t Σ_{j ≤ t − near} w_htj
Tensor read_sums(Tape& tape, const Tensor& weights, int64_t near);

/// Of each query, from p_j = |w_htj| / Σ_{i ≤ t} |w_hti| → f64 [H, T, 3], NaN where there is no weight:
///   entropy_ht  = −Σ_j p_j ln p_j   (nats)
///   distance_ht = Σ_j p_j (t − j)
///   outside_ht  = Σ_{j ≤ t − near} p_j
Tensor query_reads(Tape& tape, const Tensor& weights, int64_t near);

}  // namespace saccade
