// Fuzzy in-context recall of MAD (arXiv:2403.17844, section 3.1 and appendix B): keys and values of one to three different symbols each; at
// the end the mark and a key that was read, whose value is asked for. When testing all keys have the most symbols. Keys are of the lower
// half of the symbols, values of the upper; then the padding (in front) and the mark. MAD trains on every next token; here only on the
// answers.
#include <map>

#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

struct Settings {
  int64_t length = 128, vocabulary = 16, key_symbols = 3, value_symbols = 3;
};

const Schema<Settings> schema{
    field("length", &Settings::length, {16, 1 << 20}, "Tokens of an example.", "arXiv:2403.17844, appendix B"),
    field("vocabulary", &Settings::vocabulary, {6, 1 << 16}, "Symbols, with the mark and the padding.", "arXiv:2403.17844, appendix B"),
    field("key_symbols", &Settings::key_symbols, {1, 8}, "Most symbols of a key.", "arXiv:2403.17844, appendix B"),
    field("value_symbols", &Settings::value_symbols, {1, 8}, "Most symbols of a value.", "arXiv:2403.17844, appendix B"),
};

void check(const Settings& s) {
  const int64_t half = (s.vocabulary - 2) / 2;
  if (half < std::max(s.key_symbols, s.value_symbols)) throw UsageError("expected as many different symbols as a key or value may have");
  if (s.length < 4 * (s.key_symbols + s.value_symbols)) throw UsageError("expected a length of at least four pairs");
}

using Word = std::vector<int64_t>;

struct Maker {
  Settings s;
  Draws& draws;
  bool training;
  SymbolExample e{};
  std::map<Word, std::pair<Word, int64_t>> known{};  // key → value, and where the value began last

  int64_t half() const { return (s.vocabulary - 2) / 2; }
  Word key() { return draws.different(training ? draws.between(1, s.key_symbols) : s.key_symbols, half()); }
  Word value() {
    Word word = draws.different(draws.between(1, s.value_symbols), s.vocabulary - 2 - half());
    for (int64_t& symbol : word) symbol += half();
    return word;
  }
  void add_pair(const Word& key) {
    const auto [at, fresh] = known.try_emplace(key);
    if (fresh) at->second.first = value();
    for (const int64_t symbol : key) e.add(symbol);
    at->second.second = static_cast<int64_t>(e.tokens.size());
    for (const int64_t symbol : at->second.first) e.add(symbol);
  }
  SymbolExample make() {
    // Pairs, one of them asked for at the end, as long as all fits for certain; the padding comes in front.
    const int64_t longest = s.key_symbols + s.value_symbols;
    while (static_cast<int64_t>(e.tokens.size()) + 2 * longest <= s.length) add_pair(key());
    auto asked = known.begin();
    std::advance(asked, draws.below(static_cast<int64_t>(known.size())));
    const auto& [key, answer] = *asked;
    e.add(s.vocabulary - 1);
    for (const int64_t symbol : key) e.add(symbol);
    for (size_t i = 0; i < answer.first.size(); ++i) {
      if (i > 0) e.add(answer.first[i - 1]);
      e.targets.back() = static_cast<int32_t>(answer.first[i]);
      e.sources.back() = static_cast<int32_t>(answer.second + static_cast<int64_t>(i));
    }
    SymbolExample padded;
    const int64_t padding = s.length - static_cast<int64_t>(e.tokens.size());
    for (int64_t i = 0; i < padding; ++i) padded.add(s.vocabulary - 2);
    for (size_t i = 0; i < e.tokens.size(); ++i) padded.add(e.tokens[i], e.targets[i], e.sources[i] < 0 ? -1 : e.sources[i] + padding);
    return padded;
  }
};

const RegisterSymbolTask entry{
    SymbolTaskOf<Settings>{.id = "mad-fuzzy-recall",
                           .title = "Recall values of keys that are words of several symbols",
                           .paper = "arXiv:2403.17844, section 3.1 and appendix B",
                           .schema = schema,
                           .train = {"length-128-vocabulary-16-examples-12800"},
                           .test = {"length-256-vocabulary-16"},
                           .vocabulary = [](const Settings& s) { return s.vocabulary; },
                           .most_targets = [](const Settings& s) { return s.value_symbols; },
                           .chance = [](const Settings& s) { return 1.0 / static_cast<double>(s.vocabulary - 2 - (s.vocabulary - 2) / 2); },
                           .maker = [](const Settings& s, uint64_t) -> MakeExample {
                             return [s](Draws& draws, bool training) { return Maker{s, draws, training}.make(); };
                           },
                           .check = check}
        .task()};

}  // namespace
}  // namespace saccade
