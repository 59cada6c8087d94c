#pragma once
#include <functional>

#include "analysis/runs/run_records.h"

namespace saccade {

/// Of every head of a layer, means over the queries of one text, from |w| of each query made to sum to one; NaN where no query counts.
struct HeadScores {
  int64_t layer = 0;
  std::vector<double> entropy;    ///< over ln(t + 1), queries t ≥ 1
  std::vector<double> distance;   ///< tokens back, weighted
  std::vector<double> induction;  ///< weight of the sources j whose token before is the query's: x_{j−1} = x_t, 0 < j < t, over the
                                  ///< queries that have one; the prefix matching of arXiv:2209.11895 on this text
};

/// Of the layers whose weights were captured, in order. `cancelled` is asked now and then: once it says so the numbers mean nothing.
std::vector<HeadScores> head_scores(const Capture& capture, const std::function<bool()>& cancelled = {});

}  // namespace saccade
