#pragma once
#include <vector>

#include "models/config/config.h"
#include "models/model.h"

namespace saccade {

/// Gives a model that was just made the initial weights of training.initialisation, and returns what its learning rate is multiplied with
/// for each parameter.
///
/// published  nothing is changed, all 1.
/// normal     matrices that start at random are drawn anew, normal with training.initial_deviation; all 1.
/// mup        µP for Adam (arXiv:2203.03466, table 3; multipliers are folded into initial values and rates by its lemma J.1). Compared with
///            the same config at training.mup_base_width, where it is the published model, with r the ratio of a matrix's inputs:
///              | tensor                             | initial deviation | learning rate |
///              | embedding, position tables, filters, biases, gains | as there | 1      |
///              | matrix between two sizes that grow | · 1/√r            | 1/r           |
///              | matrix whose outputs stay          | · 1/r             | 1/r           |
///            An output that is the embedding (tied) has its multiplier 1/r (table 8) in the gain of the final norm, value and rate. Scores
///            q · k are those of 1/d in place of 1/√d (definition 4.1), d the width of a head, by the query's matrix, or its gain with
///            qk_norm rms; cosines (l2) stay. The number of heads is that of the config at both widths.
/// On the plan device no values are written. Throws UsageError.
std::vector<double> initialise(const Model& model, const RunConfig& config, int64_t vocabulary);

}  // namespace saccade
