#pragma once
#include <optional>

#include "analysis/figures/figure.h"
#include "analysis/inspection/text_sources.h"

namespace saccade {

/// A map of a capture with the cells outlined where the queries that predict a token of a known answer would read it: the source's
/// position, its chunk, or in Avey's map of splits the pair of splits. What lies in the query's own chunk or split is read without being
/// chosen; it is outlined on the diagonal.
Figure with_answers(Figure figure, const Capture& capture, const MapPlace& place, const std::vector<KnownAnswer>& answers);

/// What a query that is to predict a known answer reads of its place.
struct AnswerRead {
  int64_t source = 0;  ///< position of the token that it is to predict
  double weight = 0;
  int64_t rank = 0;  ///< 1: no position has a greater weight (by size, where weights have signs)
};

/// Empty for a query that is to predict none, or whose weights do not reach its place.
std::optional<AnswerRead> answer_read(const std::vector<KnownAnswer>& answers, int64_t query, const std::vector<double>& weights);

}  // namespace saccade
