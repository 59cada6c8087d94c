// Parity of the ones so far (arXiv:2411.12537, sections 3 and 5.1: what no linear recurrence with positive eigenvalues can keep).
#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

struct Settings {
  int64_t length = 40, least = 0, last_only = 0;
};

const Schema<Settings> schema{
    field("length", &Settings::length, {1, 1 << 20}, "Most bits of an example."),
    field("least", &Settings::least, {0, 1 << 20}, "Fewest bits of an example; 0: all have as many.", "arXiv:2411.12537, section 5.1"),
    field("last_only", &Settings::last_only, {0, 1}, "1: the parity is asked for at the last bit only, 0: at every one."),
};

MakeExample maker(const Settings& s, uint64_t) {
  return [s](Draws& draws, bool) {
    const int64_t bits = draws.between(s.least > 0 ? s.least : s.length, s.length);
    SymbolExample e;
    int64_t parity = 0;
    for (int64_t i = 0; i < bits; ++i) {
      const int64_t bit = draws.below(2);
      parity ^= bit;
      e.add(bit, s.last_only && i + 1 < bits ? kNoTarget : parity);
    }
    return e;
  };
}

const RegisterSymbolTask entry{SymbolTaskOf<Settings>{
    .id = "parity",
    .title = "Whether the number of ones so far is odd",
    .paper = "arXiv:2411.12537, section 5.1",
    .schema = schema,
    .train = {"length-40-least-3"},
    .test = {"length-64", "length-128", "length-256"},
    .vocabulary = [](const Settings&) { return 2; },
    .most_targets = [](const Settings& s) { return s.last_only ? 1 : s.length; },
    .chance = [](const Settings&) { return 0.5; },
    .maker = maker,
    .check =
        [](const Settings& s) {
          if (s.least > s.length) throw UsageError("least is more than length");
        },
}
                                   .task()};

}  // namespace
}  // namespace saccade
