#pragma once
#include "analysis/figures/figure.h"

namespace saccade {

/// Draws cooldown branches whose runs are drawn too as parts of these: in their colours, dotted, and in the legend as one thing. Curves of
/// `figure` are known by the labels of `drawn`, with what a chart puts behind them.
void subdue_branches(Figure& figure, const DrawnSet& drawn);

}  // namespace saccade
