#pragma once
#include <set>

#include "analysis/comparison/comparison.h"

namespace saccade {

/// What is told of runs names them so: by their names, which their seeds share, and where a name is that of several experiments by the
/// folder, too.
class ToldNames {
 public:
  explicit ToldNames(const std::vector<const Run*>& runs);
  std::string operator()(const Run& run) const;

 private:
  std::set<std::string> shared_;
};

/// The first three, and how many more there are. Names that have commas themselves stand apart by semicolons. `words` is not empty.
std::string named_briefly(const std::vector<std::string>& words);

/// Whether two runs were trained on as many tokens, within 1 %.
bool as_many_tokens(const Run& run, const Run& other);

/// What makes the runs incomparable to the first: see Comparison::warnings. `searched`: a setting in which each has its best value, which
/// may differ; empty: none.
std::vector<std::string> find_differences(const std::vector<const Run*>& runs, const std::string& searched);

/// "A, B: untuned: one rate only", "C: tuned: …": what the search for the best rate says of the rows, and that unequal searches are no
/// comparison.
std::vector<std::string> describe_tuning(const std::vector<ComparisonRow>& rows);

/// Rows of which a search is done, but that were trained with another value than it chose: of these no ranking holds.
void warn_of_tuning(std::vector<std::string>& warnings, const std::vector<ComparisonRow>& rows);

}  // namespace saccade
