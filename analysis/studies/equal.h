#pragma once
#include "analysis/studies/study.h"

namespace saccade {

/// Equal parameters are reached within this share.
inline constexpr double kEqualParameters = 0.005;

/// Parameters of a config's model, counted without allocating it. Throws UsageError, DataError (a tokenizer that is not there).
int64_t count_parameters(const RunConfig& config);

/// Assignments over `config` ("architecture.width=72", "training.steps=180") that give it as many parameters, FLOPs or tokens as `goal`.
/// Parameters: the settings of StudyEqual::by are tried one after the other, each at its nearest value and those that the architecture has,
/// until they are within 0.5 %.
/// FLOPs and tokens: by training.steps, to the nearest step. Throws UsageError, naming `cell` and how near it came.
std::vector<std::string> solve_equal(const StudyEqual& equal, const RunConfig& goal, const RunConfig& config, const std::string& cell);

}  // namespace saccade
