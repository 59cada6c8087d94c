#pragma once
#include "analysis/comparison/comparison.h"

namespace saccade {

/// Mean training loss (nats a token) over the last 1 % of the steps that a run has made, at least the last one. Its exponential is given
/// here as the training perplexity of arXiv:2506.11305, appendices B to K, which do not say over which steps theirs is taken. Steps of
/// thinned runs count by their stretches. NaN before the first step.
double final_training_loss(const Run& run);

/// The loss on held-back text of the training domains along one run, against its training loss (arXiv:2505.18522, figures 1a, 2a, 8 and 9):
/// `pretraining` is the mean training loss of 1 % of the run's steps around each evaluation, `ood` the mean over the training domains of
/// their validation losses, each domain once. Without points where nothing has been evaluated behind the first step.
Trajectory held_back_trajectory(const Run& run);

}  // namespace saccade
