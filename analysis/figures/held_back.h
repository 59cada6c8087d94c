#pragma once
#include "analysis/figures/figure.h"

namespace saccade {

/// held_back_trajectory() (training_loss.h) of each group of seeds, their mean at the steps that all have, with the diagonal: both losses
/// equal. Runs without an OOD domain have this figure too (arXiv:2505.18522, figures 1a, 2a, 8 and 9).
Figure held_back_figure(const DrawnSet& drawn);

}  // namespace saccade
