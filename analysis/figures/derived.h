#pragma once
#include "analysis/figures/figure.h"
#include "analysis/figures/reads.h"

namespace saccade {

/// Figures made from other figures and from reads: what the pages show beside the plain series.

/// One run's `statistic` of every layer ("entropy_normalized" → series "entropy_normalized/layer0" …), or the mean of seeds; first layers
/// lightest.
Figure layers_figure(const DrawnRuns& drawn, const std::string& statistic, XAxis x);

/// Where the training loss of runs that diverged ended. The labels say the step.
std::vector<Curve> divergence_marks(const DrawnRuns& drawn, XAxis x);

/// Where the training loss became NaN or infinite in the middle of a run: marks at these steps, as high as the loss before; the label has
/// the first of them.
std::vector<Curve> not_finite_marks(const DrawnRuns& drawn, XAxis x);

/// A map of weights with colours for its small ones too: four powers of ten below the greatest on a logarithmic scale; with weights
/// of both signs, to the hundredth part that is largest, which then all have the end's colour.
Figure log_colours(Figure figure);

/// What a query's selection was made from: a stem per candidate (chunk, split), the chosen ones in a colour of their own.
/// A query of a mixer that selects nothing: its weight over source positions.
Figure candidates_figure(const Reads& reads);

}  // namespace saccade
