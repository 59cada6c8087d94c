#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analysis/comparison/sequence_losses.h"
#include "analysis/runs/run.h"

namespace saccade {

/// What runs were evaluated on when they had ended, as far as all of them were. A run that stopped early was evaluated on fewer sequences,
/// which are the first of the others': evaluations draw them in one order.
class CommonSequences {
 public:
  using LossesOf = std::function<std::shared_ptr<const SequenceLosses>(const Run&)>;

  /// Of the runs that are finished and whole; of each text by itself.
  CommonSequences(const std::vector<const Run*>& runs, LossesOf losses_of);
  /// Null where a run was not evaluated. Throws what `losses_of` throws.
  std::shared_ptr<const SequenceLosses> of(const Run& run) const;

 private:
  LossesOf losses_of_;
  std::map<std::string, std::shared_ptr<const SequenceLosses>> cut_;  ///< by the runs' directories, where they have more
};

}  // namespace saccade
