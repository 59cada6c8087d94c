#include "analysis/tasks/score_tests.h"

#include <algorithm>
#include <cmath>

#include "analysis/comparison/repetitions.h"
#include "analysis/tasks/scored_items.h"
#include "kernels/engine/error.h"

namespace saccade {
namespace {

constexpr double kLevel = 0.05;

double mean_of(const ScoredGroup& group) {
  std::vector<double> values;
  for (const ScoredSeed& seed : group) values.push_back(seed.value);
  return mean(values);
}

/// Those of a group that are of one of these seeds; all where there is none.
std::vector<const ScoredSeed*> of_seeds(const ScoredGroup& group, const std::map<int64_t, double>& seeds) {
  std::vector<const ScoredSeed*> some;
  for (const ScoredSeed& each : group)
    if (seeds.empty() || seeds.contains(each.run->info().seed)) some.push_back(&each);
  return some;
}

std::map<int64_t, double> values_by_seed(const ScoredGroup& group) {
  std::vector<const Run*> runs;
  for (const ScoredSeed& seed : group) runs.push_back(seed.run);
  return by_seed(runs, [&](const Run& run) {
    return std::find_if(group.begin(), group.end(), [&](const ScoredSeed& seed) { return seed.run == &run; })->value;
  });
}

bool is_independent(const ScoredGroup& group) {
  std::vector<const Run*> runs;
  for (const ScoredSeed& seed : group) runs.push_back(seed.run);
  return with_one_beginning(runs).empty();
}

}  // namespace

/// What cannot be read pairs with nothing.
const ScoreTests::Items& ScoreTests::items_of(const Run& run, int64_t step) {
  const auto [at, fresh] = items_.try_emplace({run.info().directory.string(), step});
  if (!fresh) return at->second;
  try {
    const TaskResult result = read_task_result(run.info().directory, task_, step);
    at->second = {result.data_hash, right_of(result)};
  } catch (const Error&) {
  }
  return at->second;
}

/// The mean over seeds and checkpoints of the items that all of them answered; nothing where these are not the same.
std::optional<ScoreTests::Items> ScoreTests::items_of(const std::vector<const ScoredSeed*>& seeds) {
  std::vector<const Items*> all;
  for (const ScoredSeed* seed : seeds)
    for (const int64_t step : seed->steps) all.push_back(&items_of(*seed->run, step));
  if (all.empty()) return {};
  Items together = *all.front();
  for (const Items* items : all) {
    if (items->hash.empty() || items->hash != together.hash) return {};
    together.right.resize(std::min(together.right.size(), items->right.size()));
  }
  for (size_t i = 0; i < together.right.size(); ++i) {
    double sum = 0;
    for (const Items* items : all) sum += items->right[i];
    together.right[i] = sum / static_cast<double>(all.size());
  }
  return together;
}

void ScoreTests::test_items(ScoreTest& result, const std::vector<const ScoredSeed*>& own, const std::vector<const ScoredSeed*>& other) {
  std::optional<Items> a = items_of(own), b = items_of(other);
  if (!a || !b || a->hash != b->hash) return;
  const size_t count = std::min(a->right.size(), b->right.size());  // fewer of the same, where one was scored on some (--limit)
  if (count == 0) return;
  a->right.resize(count), b->right.resize(count);
  const auto is_whole = [](double right) { return right == 0 || right == 1; };
  if (std::all_of(a->right.begin(), a->right.end(), is_whole) && std::all_of(b->right.begin(), b->right.end(), is_whole)) {
    int64_t own_alone = 0, other_alone = 0;
    for (size_t i = 0; i < count; ++i) own_alone += a->right[i] > b->right[i], other_alone += a->right[i] < b->right[i];
    result.test.p = mcnemar_p(own_alone, other_alone);
  } else {
    result.test.p = paired_test(a->right, b->right).p;
  }
  if (result.test.p) result.over = std::to_string(count) + " items";
}

ScoreTest ScoreTests::test(const ScoredGroup& own, const ScoredGroup& other) {
  ScoreTest result;
  if (own.empty() || other.empty()) return result;
  const std::map<int64_t, double> a = values_by_seed(own), b = values_by_seed(other);
  std::map<int64_t, double> common;
  std::vector<double> first, second;
  for (const auto& [seed, value] : a)
    if (const auto at = b.find(seed); at != b.end()) common[seed] = 0, first.push_back(value), second.push_back(at->second);
  result.test = paired_test(first, second);
  if (common.empty()) result.test.difference.mean = mean_of(own) - mean_of(other);
  constexpr double kSame = 1e-9;  // rounding of equal shares: so alike, seeds tell nothing
  if (result.test.difference.deviation.value_or(0) > kSame && is_independent(own) && is_independent(other)) {
    result.over = std::to_string(common.size()) + " seeds";
    return result;
  }
  result.test.p.reset(), result.test.more.reset();
  result.test.difference.deviation.reset(), result.test.difference.half_95.reset();
  test_items(result, of_seeds(own, common), of_seeds(other, common));
  return result;
}

std::vector<ScoreTest> ScoreTests::against(const std::vector<ScoredGroup>& groups, size_t first) {
  std::vector<ScoreTest> results(groups.size());
  std::vector<PairedTest> tests(groups.size());
  for (size_t i = 0; i < groups.size(); ++i)
    if (i != first) results[i] = test(groups[i], groups[first]), tests[i] = results[i].test;
  correct_by_holm(tests);
  for (size_t i = 0; i < groups.size(); ++i) results[i].test = tests[i];
  return results;
}

std::optional<size_t> ScoreTests::best(const std::vector<ScoredGroup>& groups) {
  std::optional<size_t> highest;
  for (size_t i = 0; i < groups.size(); ++i)
    if (!groups[i].empty() && (!highest || mean_of(groups[i]) > mean_of(groups[*highest]))) highest = i;
  if (!highest) return {};
  const std::vector<ScoreTest> tests = against(groups, *highest);
  size_t others = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i == *highest || groups[i].empty()) continue;
    ++others;
    if (!(tests[i].test.difference.mean < 0) || tests[i].test.p_holm.value_or(1) >= kLevel) return {};
  }
  return others > 0 ? highest : std::nullopt;
}

}  // namespace saccade
