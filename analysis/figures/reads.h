#pragma once
#include "analysis/runs/run_records.h"

namespace saccade {

/// "Where did this query read from?": one query's weights over source positions, comparable between architectures.
struct Reads {
  std::vector<double> weights;    ///< over positions 0 … query; non-negative or signed
  double entropy = 0;             ///< of |w| normalised to sum 1, nats
  double entropy_normalized = 0;  ///< divided by ln(query + 1)
  double outside_256 = 0;         ///< share of |w| farther back than 256 positions
  double median_distance = 0, distance_90 = 0;
  std::vector<int64_t> chosen_positions;  ///< positions inside the selected element, chunk(s) or splits
  std::vector<double> candidate_scores;   ///< per chunk or split, NaN: not a candidate; empty when the mixer selects nothing
  std::vector<int64_t> chosen_candidates;
  int64_t candidate_size = 0;            ///< tokens in a chunk or split
  double margin = 0, captured_mass = 0;  ///< NaN where undefined
};
/// Score of the least chosen candidate minus that of the best one that was not chosen; NaN where one of them is missing. Scores that are
/// not finite are of no candidate.
double selection_margin(const std::vector<double>& scores, const std::vector<int64_t>& chosen);
/// The same of elements, from their softmax weights: a difference of scores is the ln of the ratio of weights.
double element_margin(std::vector<double> soft_weights, const std::vector<int64_t>& chosen);
/// Throws UsageError when layer, head or query are out of range.
Reads reads_of(const Capture& capture, int64_t layer, int64_t head, int64_t query);

}  // namespace saccade
