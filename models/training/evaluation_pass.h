#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "models/training/training_step.h"

namespace saccade {

/// Forward passes over frozen sequences, in pieces no larger than a training micro-batch. On a GPU the pieces of a shape are
/// recorded and replayed (cuda::Recorded), and nothing waits until all losses are summed.
class EvaluationPass {
 public:
  explicit EvaluationPass(TrainingStep& work) : work_(work) {}

  /// Loss at each position, summed over the sequences; tokens and targets are [sequences, length]. On `plan` there are none
  /// of them and all sums are 0.
  std::vector<double> losses(const std::vector<int32_t>& tokens, const std::vector<int32_t>& targets, int64_t sequences, int64_t length);
  /// Of all passes so far; what is replayed is not counted.
  Cost cost() const { return cost_; }

 private:
  /// Sequences, length, and what else lives in the arena: where a piece's tensors lie depends on nothing else.
  using Key = std::tuple<int64_t, int64_t, int64_t>;

  TrainingStep& work_;
  std::map<Key, cuda::Recorded> recorded_;
  Cost cost_;
};

}  // namespace saccade
