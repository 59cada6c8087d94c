#pragma once
#include <string>
#include <vector>

#include "analysis/runs/run.h"

namespace saccade {

/// Which runs are meant, as people type it: terms that must all hold, apart by spaces. A word is looked for in name, title, folder, state,
/// tags and note, whatever its case ("starred" where a star is); `tag:word`, `note:word`; `setting:value` (or =) asks for a setting by its
/// last word ("mixer:top1"), of a number for that number; `setting>5`, `>=`, `<`, `<=` and `setting:2..4` compare. Besides settings: loss,
/// ood, step, steps, parameters, seed, state, tokens_per_second.
class RunFilter {
 public:
  RunFilter() = default;
  explicit RunFilter(const std::string& text);

  bool passes(const Run& run) const;
  /// One that has not begun: nothing of it is measured, and its state reads "queued".
  bool passes_queued(const RunInfo& info) const;
  bool empty() const { return terms_.empty(); }

 private:
  enum class Kind { word, is, above, at_least, below, at_most, range };
  struct Term {
    Kind kind = Kind::word;
    std::string name, text;
    double low = 0, high = 0;
  };
  /// What terms are held to.
  struct Asked {
    const RunInfo& info;
    const Run* run;  ///< null: not begun
    std::string state;
  };
  static Term parse(const std::string& word);
  static bool holds(const Term& term, const Asked& asked);
  bool passes(const Asked& asked) const;

  std::vector<Term> terms_;
};

}  // namespace saccade
