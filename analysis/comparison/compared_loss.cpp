#include "analysis/comparison/compared_loss.h"

namespace saccade {

ComparedLoss compared_loss(const std::map<int64_t, double>& by_seed, bool independent) {
  ComparedLoss loss;
  if (by_seed.empty()) return loss;
  std::vector<double> values;
  for (const auto& [seed, value] : by_seed) values.push_back(value);
  loss.mean = mean(values);
  if (!independent) return loss;  // what varies between forks of one run is not what varies between seeds
  loss.by_seed = by_seed;
  loss.deviation = deviation(values);
  loss.half_95 = repeated(values).half_95;
  return loss;
}

PairedTest test_of_pairs(const std::map<int64_t, double>& a, const std::map<int64_t, double>& b) {
  std::vector<double> first, second;
  for (const auto& [seed, value] : a)
    if (const auto other = b.find(seed); other != b.end()) first.push_back(value), second.push_back(other->second);
  return paired_test(first, second);
}

void compare_with_first(const std::vector<ComparedLoss*>& losses) {
  std::vector<PairedTest> tests;
  for (size_t i = 1; i < losses.size(); ++i) tests.push_back(test_of_pairs(losses[i]->by_seed, losses[0]->by_seed));
  correct_by_holm(tests);
  for (size_t i = 0; i < losses.size(); ++i) {
    ComparedLoss& loss = *losses[i];
    if (loss.mean && losses[0]->mean) loss.against_first = *loss.mean - *losses[0]->mean;
    if (i == 0 || tests[i - 1].difference.count == 0) continue;
    loss.test = std::move(tests[i - 1]);
    loss.against_first = loss.test->difference.mean;  // the number that the test is of
  }
}

}  // namespace saccade
