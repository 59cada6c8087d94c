// Copying (arXiv:2402.01032, section 3): symbols, the mark "copy", the same symbols again. Symbols 0 … V − 2, the mark V − 1.
#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

struct Settings {
  int64_t length = 64, least = 0, vocabulary = 32;
};

const Schema<Settings> schema{
    field("length", &Settings::length, {2, 1 << 20}, "Most tokens of an example, an even number: half of them are to be copied."),
    field("least", &Settings::least, {0, 1 << 20}, "Fewest tokens of an example; 0: all have as many."),
    field("vocabulary", &Settings::vocabulary, {3, 1 << 20}, "Symbols, one of which is the mark."),
};

SymbolExample make(const Settings& s, Draws& draws) {
  const int64_t count = draws.between((s.least > 0 ? s.least : s.length) / 2, s.length / 2);
  SymbolExample e;
  std::vector<int64_t> word;
  for (int64_t i = 0; i < count; ++i) {
    word.push_back(draws.below(s.vocabulary - 1));
    e.add(word.back());
  }
  for (int64_t i = 0; i < count; ++i) e.add(i == 0 ? s.vocabulary - 1 : word[static_cast<size_t>(i - 1)], word[static_cast<size_t>(i)], i);
  return e;
}

const RegisterSymbolTask entry{SymbolTaskOf<Settings>{
    .id = "copying",
    .title = "Repeat symbols in their order",
    .paper = "arXiv:2402.01032, section 3",
    .schema = schema,
    .train = {"length-64-least-4"},
    .test = {"length-128", "length-256"},
    .vocabulary = [](const Settings& s) { return s.vocabulary; },
    .most_targets = [](const Settings& s) { return s.length / 2; },
    .chance = [](const Settings& s) { return 1.0 / static_cast<double>(s.vocabulary - 1); },
    .maker = [](const Settings& s, uint64_t) -> MakeExample { return [s](Draws& d, bool) { return make(s, d); }; },
    .check =
        [](const Settings& s) {
          if (s.length % 2 != 0 || s.least % 2 != 0 || s.least > s.length)
            throw UsageError("expected even numbers of tokens, least below length");
        }}.task()};

}  // namespace
}  // namespace saccade
