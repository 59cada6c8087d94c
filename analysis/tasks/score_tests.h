#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison/statistics.h"
#include "analysis/runs/run.h"

namespace saccade {

/// A run's score on a task: a share from 0 to 1, the mean over its checkpoints at `steps`.
struct ScoredSeed {
  const Run* run = nullptr;
  double value = 0;
  std::vector<int64_t> steps;
};
using ScoredGroup = std::vector<ScoredSeed>;  ///< seeds of one setting; empty: not scored

/// A paired test of two groups on a task, and over what it was made: "3 seeds", "500 items"; empty where there is none.
struct ScoreTest {
  PairedTest test;  ///< of the shares; the difference is that of the common seeds, else of the two means
  std::string over;
};

/// Tests of groups on one task. Paired t over the seeds that both have, two or more; else over the items that both were scored on:
/// McNemar's exact test where each is right or wrong, a paired t test where it can be right in part (symbols, means over checkpoints or
/// seeds). Items are read from the runs' results when they are needed, and once.
class ScoreTests {
 public:
  explicit ScoreTests(std::string task) : task_(std::move(task)) {}

  /// own − other, not corrected.
  ScoreTest test(const ScoredGroup& own, const ScoredGroup& other);
  /// Of every group against the one at `first`, corrected for one another (Holm); that one's, and those of groups without scores, are
  /// empty.
  std::vector<ScoreTest> against(const std::vector<ScoredGroup>& groups, size_t first);
  /// The group of the highest share, where tests tell it from each other one: below it with p < 0.05 after Holm's correction.
  std::optional<size_t> best(const std::vector<ScoredGroup>& groups);

 private:
  struct Items {
    std::string hash;  ///< the items of two runs are the same, in their order, where it is
    std::vector<double> right;
  };
  const Items& items_of(const Run& run, int64_t step);
  std::optional<Items> items_of(const std::vector<const ScoredSeed*>& seeds);
  void test_items(ScoreTest& result, const std::vector<const ScoredSeed*>& own, const std::vector<const ScoredSeed*>& other);

  std::string task_;
  std::map<std::pair<std::string, int64_t>, Items> items_;  ///< by directory and step; without a hash where they cannot be read
};

}  // namespace saccade
