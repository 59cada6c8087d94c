#pragma once
#include "analysis/figures/figure.h"
#include "analysis/inspection/text_sources.h"

namespace saccade {

/// A map of a capture with the cells outlined where the queries that predict a token of a known answer would read it: the source's
/// position, its chunk, or in Avey's map of splits the pair of splits. What lies in the query's own chunk or split is read without being
/// chosen; it is outlined on the diagonal.
Figure with_answers(Figure figure, const Capture& capture, const MapPlace& place, const std::vector<KnownAnswer>& answers);

}  // namespace saccade
