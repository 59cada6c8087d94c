#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "analysis/comparison/statistics.h"

namespace saccade {

/// A loss that rows are compared by, in nats per token: over the seeds of a row, and against the first row.
struct ComparedLoss {
  std::optional<double> mean;           ///< over the seeds that have it
  std::map<int64_t, double> by_seed;    ///< what it is the mean of; empty where the seeds are no independent repetitions
  std::optional<double> deviation;      ///< sample standard deviation over seeds, two or more
  std::optional<double> half_95;        ///< half of the 95 % interval of the mean over seeds, Student t
  std::optional<double> text_error;     ///< standard error over the text that was evaluated, not over seeds; nothing: not known
  std::optional<PairedTest> test;       ///< of the seeds that the first row has too, corrected for the other rows (Holm)
  std::optional<double> against_first;  ///< mean difference of `test`; without common seeds, of the two means
};
/// `by_seed` without its values where there is none. `independent`: whether the seeds are repetitions (with_one_beginning()).
ComparedLoss compared_loss(const std::map<int64_t, double>& by_seed, bool independent);

/// Of the seeds that both have, in pairs: a − b.
PairedTest test_of_pairs(const std::map<int64_t, double>& a, const std::map<int64_t, double>& b);

/// Fills `test` and `against_first` of all losses but the first.
void compare_with_first(const std::vector<ComparedLoss*>& losses);

}  // namespace saccade
