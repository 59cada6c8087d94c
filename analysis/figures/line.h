#pragma once
#include <functional>
#include <string>
#include <vector>

#include "analysis/figures/figure.h"

namespace saccade {

/// Points with ascending x; a band around them where they are a mean.
struct Line {
  Column x, y, low = {}, high = {};
};

/// A series of a run over an axis. `means`: of a thinned series the means of its stretches, which smoothing and averages are made from.
Line line_of(const Run& run, const std::string& series, XAxis x, bool means = false);
/// OOD loss minus validation loss, at the steps that have both.
Line gap_line(const Run& run, XAxis x, bool ratio = false);

/// Exponential: weights fall by e in `width` behind a point, without bias at the start. Window: the mean within half of `width` on either
/// side, where all of that lies within the line. A value that is there never changes when the line grows. What is not finite is left out.
Line smoothed(const Line& line, const Smoothing& smoothing);

/// The mean of lines at the places of the longest, each interpolated between its points, with a band around it. Where fewer lines reach,
/// the mean is of those.
Line mean_of(const std::vector<Line>& lines, Spread spread = Spread::deviation);

}  // namespace saccade
