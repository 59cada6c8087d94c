#pragma once
#include <string>
#include <vector>

#include "analysis/runs/run.h"

namespace saccade {

/// Names that a filter (RunFilter) asks for and no run has, as they are written: "lr" of "lr>0.01". In the order of the text, each once.
std::vector<std::string> unknown_filter_names(const std::string& text, const std::vector<const Run*>& runs);

}  // namespace saccade
