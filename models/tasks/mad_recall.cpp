// In-context recall and noisy in-context recall of MAD (arXiv:2403.17844, section 3.1 and appendix B): pairs of key and value, keys come
// again, and the values of keys seen before are asked for. Keys are the lower half of the symbols that are no noise, values the upper half.
// MAD trains on every next token; here only on the answers.
#include <map>

#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

struct Settings {
  int64_t length = 128, vocabulary = 16, noise_vocabulary = 0;
  double noise = 0;
};

const Schema<Settings> schema{
    field("length", &Settings::length, {4, 1 << 20}, "Tokens of an example, even; the last value is answered, not read.",
          "arXiv:2403.17844, appendix B"),
    field("vocabulary", &Settings::vocabulary, {4, 1 << 20}, "Symbols, those of noise among them.", "arXiv:2403.17844, appendix B"),
    field("noise_vocabulary", &Settings::noise_vocabulary, {0, 1 << 20}, "Symbols of noise.", "arXiv:2403.17844, appendix B"),
    field("noise", &Settings::noise, {0, 0.95}, "Share of pairs that are noise.", "arXiv:2403.17844, appendix B"),
};

void check(const Settings& s) {
  if (s.length % 2 != 0) throw UsageError("expected an even length");
  if (s.vocabulary - s.noise_vocabulary < 4) throw UsageError("expected at least four symbols that are no noise");
  if (s.noise > 0 && s.noise_vocabulary == 0) throw UsageError("noise needs a noise_vocabulary");
}

/// Symbols that are values: those that are no keys and no noise.
int64_t value_symbols(const Settings& s) { return s.vocabulary - s.noise_vocabulary - (s.vocabulary - s.noise_vocabulary) / 2; }

SymbolExample make(const Settings& s, Draws& draws) {
  const int64_t symbols = s.vocabulary - s.noise_vocabulary, half = symbols / 2, pairs = s.length / 2;
  const int64_t never_noise = draws.below(pairs - 1);
  std::map<int64_t, std::pair<int64_t, int64_t>> known;  // key → value, and where the value stood last
  SymbolExample e;
  const auto add_pair = [&](int64_t key) {
    const auto [at, fresh] = known.try_emplace(key, 0, 0);
    if (fresh) at->second.first = half + draws.below(symbols - half);
    const auto [value, source] = at->second;
    e.add(key, fresh ? kNoTarget : value, fresh ? -1 : source);
    e.add(value);
    at->second.second = static_cast<int64_t>(e.tokens.size()) - 1;
  };
  for (int64_t i = 0; i < pairs - 1; ++i) {
    if (i != never_noise && s.noise > 0 && draws.uniform() < s.noise)
      for (int j = 0; j < 2; ++j) e.add(symbols + draws.below(s.noise_vocabulary));
    else
      add_pair(draws.below(half));
  }
  auto asked = known.begin();
  std::advance(asked, draws.below(static_cast<int64_t>(known.size())));
  add_pair(asked->first);
  return e;
}

SymbolTask task(const char* id, const char* title, const char* source, std::vector<std::string> train, std::vector<std::string> test) {
  return SymbolTaskOf<Settings>{
      .id = id,
      .title = title,
      .paper = source,
      .schema = schema,
      .train = std::move(train),
      .test = std::move(test),
      .vocabulary = [](const Settings& s) { return s.vocabulary; },
      .most_targets = [](const Settings& s) { return s.length / 2 - 1; },
      .chance = [](const Settings& s) { return 1.0 / static_cast<double>(value_symbols(s)); },
      .maker = [](const Settings& s, uint64_t) -> MakeExample { return [s](Draws& d, bool) { return make(s, d); }; },
      .check = check}
      .task();
}

const RegisterSymbolTask plain{task("mad-in-context-recall", "Recall values of keys that come again",
                                    "arXiv:2403.17844, section 3.1 and appendix B", {"length-128-vocabulary-16-examples-12800"},
                                    {"length-256-vocabulary-16", "length-512-vocabulary-16"})};
const RegisterSymbolTask noisy{
    task("mad-noisy-recall", "The same, with noise between", "arXiv:2403.17844, section 3.1 and appendix B",
         {"length-128-vocabulary-32-noise_vocabulary-16-noise-0.2-examples-12800"},
         {"length-256-vocabulary-32-noise_vocabulary-16-noise-0.2", "length-128-vocabulary-32-noise_vocabulary-16-noise-0.8"})};

}  // namespace
}  // namespace saccade
