#include "analysis/tasks/score_tests.h"

#include <algorithm>
#include <map>

namespace saccade {
namespace {

constexpr double kLevel = 0.05;

double mean_of(const ScoredGroup& group) {
  std::vector<double> values;
  for (const ScoredSeed& seed : group.seeds) values.push_back(seed.value);
  return mean(values);
}

/// A seed that stands twice counts once, by its mean.
std::map<int64_t, double> values_by_seed(const ScoredGroup& group) {
  std::map<int64_t, std::vector<double>> values;
  for (const ScoredSeed& seed : group.seeds) values[seed.seed].push_back(seed.value);
  std::map<int64_t, double> means;
  for (const auto& [seed, each] : values) means[seed] = mean(each);
  return means;
}

/// The mean of the items that all of these seeds answered at all checkpoints, of all seeds where none is named; nothing where the items
/// are not the same.
std::optional<AnsweredItems> items_of(const ScoredGroup& group, const std::map<int64_t, double>& seeds) {
  std::vector<AnsweredItems> all;
  for (const ScoredSeed& seed : group.seeds)
    if (seed.items && (seeds.empty() || seeds.contains(seed.seed)))
      for (AnsweredItems& items : seed.items()) all.push_back(std::move(items));
  if (all.empty()) return {};
  AnsweredItems together = all.front();
  for (const AnsweredItems& items : all) {
    if (items.hash.empty() || items.hash != together.hash) return {};
    together.right.resize(std::min(together.right.size(), items.right.size()));
  }
  for (size_t i = 0; i < together.right.size(); ++i) {
    double sum = 0;
    for (const AnsweredItems& items : all) sum += items.right[i];
    together.right[i] = sum / static_cast<double>(all.size());
  }
  return together;
}

void test_items(ScoreTest& result, std::optional<AnsweredItems> a, std::optional<AnsweredItems> b) {
  if (!a || !b || a->hash != b->hash) return;
  const size_t count = std::min(a->right.size(), b->right.size());  // fewer of the same, where one was scored on some (--limit)
  if (count == 0) return;
  a->right.resize(count), b->right.resize(count);
  const auto is_whole = [](double right) { return right == 0 || right == 1; };
  if (std::all_of(a->right.begin(), a->right.end(), is_whole) && std::all_of(b->right.begin(), b->right.end(), is_whole)) {
    int64_t own_alone = 0, other_alone = 0;
    for (size_t i = 0; i < count; ++i) own_alone += a->right[i] > b->right[i], other_alone += a->right[i] < b->right[i];
    result.test.p = mcnemar_p(own_alone, other_alone), result.name = "McNemar";
  } else {
    result.test.p = paired_test(a->right, b->right).p, result.name = "paired t";
  }
  if (result.test.p)
    result.over = std::to_string(count) + " items";
  else
    result.name.clear();
}

}  // namespace

ScoreTest score_test(const ScoredGroup& own, const ScoredGroup& other) {
  ScoreTest result;
  if (own.seeds.empty() || other.seeds.empty()) return result;
  const std::map<int64_t, double> a = values_by_seed(own), b = values_by_seed(other);
  std::map<int64_t, double> common;
  std::vector<double> first, second;
  for (const auto& [seed, value] : a)
    if (const auto at = b.find(seed); at != b.end()) common[seed] = 0, first.push_back(value), second.push_back(at->second);
  result.test = paired_test(first, second);
  if (common.empty()) result.test.difference.mean = mean_of(own) - mean_of(other);
  constexpr double kSame = 1e-9;  // rounding of equal shares
  if (result.test.difference.deviation.value_or(0) > kSame && own.is_independent && other.is_independent) {
    result.over = std::to_string(common.size()) + " seeds", result.name = "paired t";
    return result;
  }
  result.test.p.reset(), result.test.more.reset();
  result.test.difference.deviation.reset(), result.test.difference.half_95.reset();
  test_items(result, items_of(own, common), items_of(other, common));
  return result;
}

std::vector<ScoreTest> score_tests(const std::vector<ScoredGroup>& groups, size_t first) {
  std::vector<ScoreTest> results(groups.size());
  std::vector<PairedTest> tests(groups.size());
  for (size_t i = 0; i < groups.size(); ++i)
    if (i != first) results[i] = score_test(groups[i], groups[first]), tests[i] = results[i].test;
  correct_by_holm(tests);
  for (size_t i = 0; i < groups.size(); ++i) results[i].test = tests[i];
  return results;
}

ScoreRanking rank_scores(const std::vector<ScoredGroup>& groups) {
  ScoreRanking ranking;
  for (size_t i = 0; i < groups.size(); ++i)
    if (!groups[i].seeds.empty() && (!ranking.highest || mean_of(groups[i]) > mean_of(groups[*ranking.highest]))) ranking.highest = i;
  if (!ranking.highest) return ranking;
  ranking.tests = score_tests(groups, *ranking.highest);
  size_t others = 0, below = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i == *ranking.highest || groups[i].seeds.empty()) continue;
    const PairedTest& test = ranking.tests[i].test;
    ++others, below += test.difference.mean < 0 && test.p_holm.value_or(1) < kLevel;
  }
  ranking.is_told = others > 0 && below == others;
  return ranking;
}

}  // namespace saccade
