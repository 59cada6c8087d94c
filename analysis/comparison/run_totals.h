#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "analysis/runs/run.h"

namespace saccade {

/// Of last losses, in nats per token; NaN where there are none, the deviation also of a single one.
struct LossTotal {
  int64_t count = 0;
  double best = std::numeric_limits<double>::quiet_NaN(), mean = best, deviation = best;  ///< sample standard deviation
};

/// What runs reached together: of those that are finished and whole.
struct RunTotals {
  bool comparable = true;    ///< one corpus, the same domains, one tokenizer; else there are no losses
  bool one_setting = false;  ///< they repeat one experiment, so that mean and deviation mean something
  LossTotal loss, ood;       ///< on held-out text of the training domains; mean over other domains
};
RunTotals totals_of(const std::vector<const Run*>& runs);

}  // namespace saccade
