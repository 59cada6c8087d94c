// Compression of MAD (arXiv:2403.17844, section 3.1 and appendix B): symbols and a mark, then the number of each place, at which the symbol
// of that place is asked for. In MAD an MLP decodes all symbols from what stands at the mark; a language model goes on reading instead, so
// a mixer that looks back is not held to one state as there. Symbols 0 … V − 2, the mark V − 1, place i is the symbol V + i.
#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

struct Settings {
  int64_t length = 64, vocabulary = 16;
};

const Schema<Settings> schema{
    field("length", &Settings::length, {2, 1 << 16}, "Tokens of an example, even: half are the symbols and the mark.",
          "arXiv:2403.17844, appendix B"),
    field("vocabulary", &Settings::vocabulary, {3, 1 << 16}, "Symbols, with the mark.", "arXiv:2403.17844, appendix B"),
};

int64_t symbols(const Settings& s) { return s.length / 2 - 1; }

SymbolExample make(const Settings& s, Draws& draws) {
  SymbolExample e;
  for (int64_t i = 0; i < symbols(s); ++i) e.add(draws.below(s.vocabulary - 1));
  e.add(s.vocabulary - 1);
  for (int64_t i = 0; i < symbols(s); ++i) e.add(s.vocabulary + i, e.tokens[static_cast<size_t>(i)], i);
  return e;
}

const RegisterSymbolTask entry{SymbolTaskOf<Settings>{
    .id = "mad-compression",
    .title = "Say what stood at each place",
    .paper = "arXiv:2403.17844, section 3.1 and appendix B",
    .schema = schema,
    .train = {"length-64-vocabulary-16-examples-12800"},
    .test = {},
    .vocabulary = [](const Settings& s) { return s.vocabulary + symbols(s); },
    .most_targets = [](const Settings& s) { return symbols(s); },
    .chance = [](const Settings& s) { return 1.0 / static_cast<double>(s.vocabulary - 1); },
    .maker = [](const Settings& s, uint64_t) -> MakeExample { return [s](Draws& d, bool) { return make(s, d); }; },
    .check =
        [](const Settings& s) {
          if (s.length % 2 != 0 || s.length < 4) throw UsageError("expected an even length of at least 4");
        }}.task()};

}  // namespace
}  // namespace saccade
