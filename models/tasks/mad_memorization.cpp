// Memorization of MAD (arXiv:2403.17844, section 3.1 and appendix B): each key has one value, the same in all examples; behind a key stands
// the mark, at which the value is asked for and never read. Keys are the lower half of the symbols but the mark, values the upper half.
#include "models/corpus/permutation.h"
#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

struct Settings {
  int64_t length = 32, vocabulary = 256;
};

const Schema<Settings> schema{
    field("length", &Settings::length, {2, 1 << 20}, "Tokens of an example, even.", "arXiv:2403.17844, appendix B"),
    field("vocabulary", &Settings::vocabulary, {4, 1 << 20}, "Symbols, with the mark.", "arXiv:2403.17844, appendix B"),
};

MakeExample maker(const Settings& s, uint64_t seed) {
  return [s, seed](Draws& draws, bool) {
    const int64_t half = (s.vocabulary - 1) / 2;
    const Permutation values(static_cast<uint64_t>(s.vocabulary - 1 - half), seed, "facts of mad-memorization", 0);
    SymbolExample e;
    for (int64_t i = 0; i < s.length / 2; ++i) {
      const int64_t key = draws.below(half);
      e.add(key);
      e.add(s.vocabulary - 1, half + static_cast<int64_t>(values(static_cast<uint64_t>(key))));
    }
    return e;
  };
}

const RegisterSymbolTask entry{
    SymbolTaskOf<Settings>{.id = "mad-memorization",
                           .title = "Learn facts by heart",
                           .paper = "arXiv:2403.17844, section 3.1 and appendix B",
                           .schema = schema,
                           .train = {"length-32-vocabulary-256"},
                           .test = {},
                           .vocabulary = [](const Settings& s) { return s.vocabulary; },
                           .most_targets = [](const Settings& s) { return s.length / 2; },
                           .chance = [](const Settings& s) { return 1.0 / static_cast<double>((s.vocabulary - 1) / 2); },
                           .maker = maker,
                           .check =
                               [](const Settings& s) {
                                 if (s.length % 2 != 0) throw UsageError("expected an even length");
                               },
                           .disjoint = false}
        .task()};

}  // namespace
}  // namespace saccade
