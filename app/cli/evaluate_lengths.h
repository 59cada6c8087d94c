#pragma once
#include <string>
#include <vector>

#include "analysis/evaluation/length_evaluation.h"

namespace saccade::cli {

/// `saccade evaluate RUN… --lengths 512,1024,2048`: losses of the same documents at several lengths, of each run, told and kept with it.
int evaluate_over_lengths(const std::vector<std::string>& runs, const RunEvaluationOptions& options, const LengthOptions& lengths);

}  // namespace saccade::cli
