// Selective copying of MAD (arXiv:2403.17844, section 3.1 and appendix B; arXiv:2312.00752, section 4.1.1): symbols among blanks, the mark,
// then as many blanks, at which the symbols are asked for in their order. Symbols 0 … V − 3, blank V − 2, mark V − 1.
#include <algorithm>

#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

struct Settings {
  int64_t length = 256, vocabulary = 16, copied = 16;
};

const Schema<Settings> schema{
    field("length", &Settings::length, {4, 1 << 20}, "Tokens of an example.", "arXiv:2403.17844, appendix B"),
    field("vocabulary", &Settings::vocabulary, {4, 1 << 20}, "Symbols, with the blank and the mark.", "arXiv:2403.17844, appendix B"),
    field("copied", &Settings::copied, {1, 1 << 18}, "Symbols to copy.", "arXiv:2403.17844, appendix B"),
};

SymbolExample make(const Settings& s, Draws& draws) {
  const int64_t blank = s.vocabulary - 2, before = s.length - s.copied - 1;
  std::vector<int64_t> places = draws.different(s.copied, before);
  std::sort(places.begin(), places.end());
  SymbolExample e;
  for (int64_t i = 0; i < before; ++i) e.add(std::binary_search(places.begin(), places.end(), i) ? draws.below(s.vocabulary - 2) : blank);
  e.add(s.vocabulary - 1);
  for (const int64_t place : places) e.add(blank, e.tokens[static_cast<size_t>(place)], place);
  return e;
}

const RegisterSymbolTask entry{SymbolTaskOf<Settings>{
    .id = "mad-selective-copying",
    .title = "Repeat symbols that stand among blanks",
    .paper = "arXiv:2403.17844, section 3.1 and appendix B",
    .schema = schema,
    .train = {"length-256-vocabulary-16-copied-16-examples-12800"},
    .test = {"length-512-vocabulary-16-copied-16"},
    .vocabulary = [](const Settings& s) { return s.vocabulary; },
    .most_targets = [](const Settings& s) { return s.copied; },
    .chance = [](const Settings& s) { return 1.0 / static_cast<double>(s.vocabulary - 2); },
    .maker = [](const Settings& s, uint64_t) -> MakeExample { return [s](Draws& d, bool) { return make(s, d); }; },
    .check =
        [](const Settings& s) {
          if (s.length <= 2 * s.copied + 1)
            throw UsageError("expected a length of more than two tokens for each symbol to copy, and the mark");
        }}.task()};

}  // namespace
}  // namespace saccade
