#pragma once
#include <functional>

#include "analysis/studies/study.h"

namespace saccade {

/// Equal parameters, and equal state, are reached within these shares: states come in whole heads and tokens.
inline constexpr double kEqualParameters = 0.005, kEqualState = 0.02;

/// Parameters of a config's model, counted without allocating it. Throws UsageError, DataError (a tokenizer that is not there).
int64_t count_parameters(const RunConfig& config);
/// Numbers that decoding keeps per token of a context as long as the training sequence (Model::state_values_per_token), likewise.
double count_state(const RunConfig& config);

/// A cell whose settings are solved for.
struct EqualCell {
  std::string name;
  nlohmann::json written;                                                    ///< its config before defaults are filled in
  std::function<RunConfig(const std::vector<std::string>& settings)> parse;  ///< with more assignments
};

/// What was solved for a cell.
struct EqualSolution {
  std::vector<std::string> settings;  ///< assignments: "architecture.width=72", "training.steps=180"
  std::string short_of;               ///< state that no setting reaches: both values in words; else empty
};

/// Assignments ("architecture.width=72", "training.steps=180") that give a cell as many parameters, as much state, FLOPs or tokens as
/// `goal`. Parameters and state: the settings of StudyEqual::by that its config has are tried one after the other, each at its nearest
/// value, until they are within 0.5 % (state: 2 %). FLOPs and tokens: by training.steps, to the nearest step. Seconds: nothing. State that
/// cannot be reached (a window that is longer than the state of a recurrence may be) is left at the nearest, and told; parameters that
/// cannot throw UsageError, naming the cell and how near it came.
EqualSolution solve_equal(const StudyEqual& equal, const RunConfig& goal, const EqualCell& cell);
/// Likewise, for so many parameters as a number says.
std::vector<std::string> solve_parameters(int64_t goal, const std::vector<std::string>& by, const EqualCell& cell);

}  // namespace saccade
