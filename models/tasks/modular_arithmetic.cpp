// Modular arithmetic without brackets (arXiv:2207.02098, section 4; arXiv:2411.12537, section 5.1): 1 + 2 * 3 - 4 = ?, products first,
// modulo m. Numbers are the symbols 0 … m − 1, then +, −, · and =.
#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

struct Settings {
  int64_t length = 40, least = 0, modulus = 5;
};

const Schema<Settings> schema{
    field("length", &Settings::length, {2, 1 << 20},
          "Most tokens of an example, an even number: numbers, signs between them and the last =."),
    field("least", &Settings::least, {0, 1 << 20}, "Fewest tokens of an example; 0: all have as many.", "arXiv:2411.12537, section 5.1"),
    field("modulus", &Settings::modulus, {2, 1000}, "Results are modulo this.", "arXiv:2207.02098, section 4"),
};

void check(const Settings& s) {
  if (s.length % 2 != 0 || s.least % 2 != 0 || s.least > s.length) throw UsageError("expected even numbers of tokens, least below length");
}

SymbolExample make(const Settings& s, Draws& draws) {
  enum Sign { plus, minus, times };
  const int64_t m = s.modulus, equals = m + 3;
  const int64_t numbers = draws.between((s.least > 0 ? s.least : s.length) / 2, s.length / 2);
  SymbolExample e;
  int64_t sum = 0, product = draws.below(m);  // of what is complete; the factor under way, with its sign
  e.add(product);
  for (int64_t i = 1; i < numbers; ++i) {
    const int64_t sign = draws.below(3), number = draws.below(m);
    e.add(m + sign), e.add(number);
    if (sign == times) {
      product = product * number % m;
    } else {
      sum = (sum + product) % m;
      product = sign == plus ? number : (m - number) % m;
    }
  }
  e.add(equals, (sum + product) % m);
  return e;
}

const RegisterSymbolTask entry{
    SymbolTaskOf<Settings>{.id = "modular-arithmetic",
                           .title = "The value of a sum of products, modulo a number",
                           .paper = "arXiv:2207.02098, section 4; arXiv:2411.12537, section 5.1",
                           .schema = schema,
                           .train = {"length-40-least-4"},
                           .test = {"length-64", "length-128", "length-256"},
                           .vocabulary = [](const Settings& s) { return s.modulus + 4; },
                           .most_targets = [](const Settings&) { return 1; },
                           .chance = [](const Settings& s) { return 1.0 / static_cast<double>(s.modulus); },
                           .maker = [](const Settings& s, uint64_t) -> MakeExample { return [s](Draws& d, bool) { return make(s, d); }; },
                           .check = check}
        .task()};

}  // namespace
}  // namespace saccade
