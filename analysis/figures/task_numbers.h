#pragma once
#include <string>

namespace saccade {

/// Numbers in the names of tasks and their domains, by which figures place scores.

/// "mqar-length-64-pairs-8", pairs → 8; of "s-niah-2-4096" the last number is the length. NaN where the name does not say.
double number_in_name(const std::string& task, const std::string& word);
/// "length" → "length (tokens)", "depth" → "depth (%)"; other words stand for themselves.
std::string score_axis_title(const std::string& word);

}  // namespace saccade
