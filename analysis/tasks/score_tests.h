#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison/statistics.h"

namespace saccade {

/// What a run answered of a task's items, each from 0 to 1: right or wrong, or right in part.
struct AnsweredItems {
  std::string hash;  ///< the items of two runs are the same, in their order, where it is; empty: they cannot be read
  std::vector<double> right;
};

/// A run's score on a task.
struct ScoredSeed {
  int64_t seed = 0;
  double value = 0;  ///< a share from 0 to 1, mean over the checkpoints
  std::function<std::vector<AnsweredItems>()>
      items;  ///< of each checkpoint; asked for where seeds do not decide, and empty of several tasks
};

/// Runs of one setting.
struct ScoredGroup {
  std::vector<ScoredSeed> seeds;  ///< empty: not scored
  bool is_independent = true;     ///< no two share their beginning
};

/// A paired test of two groups on a task, what it is called and over what it was made; both are empty where there is none.
struct ScoreTest {
  PairedTest test;        ///< of the shares; the difference is that of the common seeds, else of the two means
  std::string over = {};  ///< "3 seeds", "500 items"
  std::string name = {};  ///< "paired t", "McNemar"
};

/// Paired t over the seeds that both have, where there are two or more that do not differ all by the same, which says nothing of how they
/// vary; else over the items that both answered, mean over seeds and checkpoints: McNemar's exact test where each is right or wrong, a
/// paired t test where one is right in part. own − other, not corrected.
ScoreTest score_test(const ScoredGroup& own, const ScoredGroup& other);

/// Of every group against the one at `first`, corrected for one another (Holm); that one's, and those of groups without scores, are empty.
std::vector<ScoreTest> score_tests(const std::vector<ScoredGroup>& groups, size_t first);

/// The group of the highest mean share, and the tests of the others against it.
struct ScoreRanking {
  std::optional<size_t> highest;
  std::vector<ScoreTest> tests;
  bool is_told = false;  ///< each other group that was scored is below it with p < 0.05 after Holm's correction

  std::optional<size_t> best() const { return is_told ? highest : std::nullopt; }
};
ScoreRanking rank_scores(const std::vector<ScoredGroup>& groups);

}  // namespace saccade
