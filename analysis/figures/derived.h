#pragma once
#include "analysis/figures/figure.h"
#include "analysis/figures/reads.h"

namespace saccade {

/// Figures made from other figures and from reads: what the pages show beside the plain series.

/// The thin curves (raw, one value a step) stay, paler and without a place in the legend; over each lies its centred mean of
/// `points` samples (odd; fewer at the ends and beside a gap), named in its label, in the legend where the raw one was.
Figure smoothed(Figure figure, int64_t points);

/// a − b, curve by curve of equal label, at the x that both have. Axes of `a`, with `title` for id, title and y axis.
Figure difference(const Figure& a, const Figure& b, const std::string& id, const std::string& title, const std::string& y_title);

/// One run's `statistic` of every layer ("entropy_normalized" → series "entropy_normalized/layer0" …), first layers lightest.
Figure layers_figure(const Run& run, const std::string& statistic, XAxis x, const RunSet& among = {});

/// Where a run's training loss ended, for a run that diverged; nothing else. The label says the step.
std::optional<Curve> divergence_mark(const Run& run, XAxis x, const RunSet& among = {});

/// Normalised entropy of |weights| (1: evenly spread over all positions), mean over a sample's queries after the first:
/// layers × heads. No map when the capture holds no weights.
Figure capture_heads_figure(const Capture& capture);

/// A map of weights with colours for its small ones too: four powers of ten below the greatest on a logarithmic scale; with weights
/// of both signs, to the hundredth part that is largest, which then all have the end's colour.
Figure log_colours(Figure figure);

/// What a query's selection was made from: a stem per candidate (chunk, split), the chosen ones in a colour of their own.
/// A query of a mixer that selects nothing: its weight over source positions.
Figure candidates_figure(const Reads& reads);

}  // namespace saccade
