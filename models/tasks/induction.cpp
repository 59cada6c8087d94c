// Induction (arXiv:2212.14052, section 3.1; arXiv:2312.00752, section 4.1.2): among random symbols stands a mark, once; behind the mark at
// the end comes what came behind it then. Symbols 0 … V − 2, the mark V − 1.
#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

struct Settings {
  int64_t length = 256, vocabulary = 16;
};

const Schema<Settings> schema{
    field("length", &Settings::length, {4, 1 << 20}, "Tokens of an example.", "arXiv:2312.00752, section 4.1.2"),
    field("vocabulary", &Settings::vocabulary, {3, 1 << 20}, "Symbols, one of which is the mark.", "arXiv:2312.00752, section 4.1.2"),
};

SymbolExample make(const Settings& s, Draws& draws) {
  const int64_t mark = s.vocabulary - 1, place = draws.below(s.length - 2);
  SymbolExample e;
  for (int64_t i = 0; i < s.length - 1; ++i) e.add(i == place ? mark : draws.below(mark));
  e.add(mark, e.tokens[static_cast<size_t>(place + 1)], place + 1);
  return e;
}

const RegisterSymbolTask entry{SymbolTaskOf<Settings>{
    .id = "induction",
    .title = "What came behind a mark",
    .paper = "arXiv:2312.00752, section 4.1.2",
    .schema = schema,
    .train = {"length-256"},
    .test = {"length-64", "length-512", "length-1024"},
    .vocabulary = [](const Settings& s) { return s.vocabulary; },
    .most_targets = [](const Settings&) { return 1; },
    .chance = [](const Settings& s) { return 1.0 / static_cast<double>(s.vocabulary - 1); },
    .maker = [](const Settings& s, uint64_t) -> MakeExample {
      return [s](Draws& d, bool) { return make(s, d); };
    }}.task()};

}  // namespace
}  // namespace saccade
