#pragma once
#include "analysis/figures/figure.h"

namespace saccade {

/// How far the choice of every query of a head was from another one: the score of the least chosen element, chunk or split minus that of
/// the best which was not, [T]. Chunks: as captured. Elements: ln of the ratio of their softmax weights, which is the difference of their
/// scores. Splits (Avey): of the split that holds the query. NaN where there was no other candidate; empty where the layer chooses nothing.
bool has_margins(const Capture& capture, int64_t layer);
std::vector<float> choice_margins(const Capture& capture, int64_t layer, int64_t head);
/// A map of the capture (capture_figure) with these margins as the strip beside it; as it was where the layer has none.
Figure with_margins(Figure figure, const Capture& capture, int64_t layer, int64_t head);

}  // namespace saccade
