// Multi-query associative recall (Arora et al. 2023, arXiv:2312.04927, section 3.1 and appendix E): D pairs of key and value, then each
// key again at a random place, whose value is asked for. Keys 1 … V/2 − 1, values V/2 … V − 1, 0 between.
#include <cmath>

#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

struct Settings {
  int64_t length = 64, pairs = 4, vocabulary = 8192;
  double power = 0.01;
  int64_t random_others = 0;
};

const Schema<Settings> schema{
    field("length", &Settings::length, {8, 1 << 20}, "Tokens of an example; even, at least four for each pair."),
    field("pairs", &Settings::pairs, {1, 1 << 18}, "Pairs of key and value, each asked for once.", "arXiv:2312.04927, section 3.1"),
    field("vocabulary", &Settings::vocabulary, {8, 1 << 20}, "Symbols, more than tokens: half of them keys, half values.",
          "arXiv:2312.04927, appendix E"),
    field("power", &Settings::power, {1e-3, 10}, "A query comes in slot g with a weight g^(power − 1): small, soon after the pairs.",
          "arXiv:2312.04927, appendix E"),
    field("random_others", &Settings::random_others, {0, 1}, "1: other tokens are random, 0: they are 0."),
};

void check(const Settings& s) {
  if (s.length % 2 != 0 || 4 * s.pairs > s.length) throw UsageError("expected an even length of at least four tokens for each pair");
  // The published generator wants more symbols than tokens. As many are let through, for runs of mqar-tiny from before this was checked.
  if (s.vocabulary < s.length) throw UsageError("expected more symbols than tokens, vocabulary above length");
  if (s.vocabulary % 2 != 0 || s.vocabulary / 2 - 1 < s.pairs) throw UsageError("expected an even vocabulary with a key for each pair");
}

/// Different slots 0 … n−1, drawn one after another with weights (slot + 1)^(power − 1), [pairs]. Equals successive draws without
/// replacement: the slots with the least of −ln u / weight, in their order (Efraimidis and Spirakis 2006).
std::vector<int64_t> draw_slots(const std::vector<double>& weights, int64_t count, Draws& draws) {
  std::vector<std::pair<double, int64_t>> waits;
  for (size_t slot = 0; slot < weights.size(); ++slot)
    waits.emplace_back(-std::log1p(-draws.uniform()) / weights[slot], static_cast<int64_t>(slot));
  std::partial_sort(waits.begin(), waits.begin() + count, waits.end());
  std::vector<int64_t> slots;
  for (int64_t i = 0; i < count; ++i) slots.push_back(waits[static_cast<size_t>(i)].second);
  return slots;
}

SymbolExample make(const Settings& s, const std::vector<double>& weights, Draws& draws) {
  const int64_t half = s.vocabulary / 2;
  std::vector<int64_t> keys = draws.different(s.pairs, half - 1), values = draws.different(s.pairs, half);
  SymbolExample e;
  for (size_t i = 0; i < keys.size(); ++i) e.add(keys[i] + 1), e.add(values[i] + half);
  while (static_cast<int64_t>(e.tokens.size()) < s.length) e.add(s.random_others ? draws.below(s.vocabulary) : 0);
  const std::vector<int64_t> slots = draw_slots(weights, s.pairs, draws);
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto at = static_cast<size_t>(2 * (s.pairs + slots[i]));
    e.tokens[at] = static_cast<int32_t>(keys[i] + 1);
    e.targets[at] = static_cast<int32_t>(values[i] + half);
    e.sources[at] = static_cast<int32_t>(2 * i + 1);
  }
  return e;
}

MakeExample maker(const Settings& s, uint64_t) {
  std::vector<double> weights;
  for (int64_t slot = 1; slot <= s.length / 2 - s.pairs; ++slot) weights.push_back(std::pow(static_cast<double>(slot), s.power - 1));
  return [s, weights](Draws& draws, bool) { return make(s, weights, draws); };
}

const RegisterSymbolTask entry{
    SymbolTaskOf<Settings>{.id = "mqar",
                           .title = "Recall the values of several keys",
                           .paper = "arXiv:2312.04927, section 3.1",
                           .schema = schema,
                           .train = {"length-64-pairs-4-examples-100000"},
                           .test = {"length-64-pairs-8", "length-64-pairs-16", "length-128-pairs-32", "length-256-pairs-64"},
                           .vocabulary = [](const Settings& s) { return s.vocabulary; },
                           .most_targets = [](const Settings& s) { return s.pairs; },
                           .chance = [](const Settings& s) { return 1.0 / static_cast<double>(s.vocabulary / 2); },
                           .maker = maker,
                           .check = check}
        .task()};

}  // namespace
}  // namespace saccade
