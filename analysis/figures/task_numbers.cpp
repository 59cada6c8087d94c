#include "analysis/figures/task_numbers.h"

#include <cstdlib>
#include <limits>

namespace saccade {

double number_in_name(const std::string& task, const std::string& word) {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  const auto number_at = [&](size_t at) {
    char* end = nullptr;
    const double value = std::strtod(task.c_str() + at, &end);
    return end != task.c_str() + at && (*end == '-' || *end == 0) ? value : kNothing;
  };
  if (const size_t at = task.find("-" + word + "-"); at != task.npos) return number_at(at + word.size() + 2);
  const size_t last = task.rfind('-');
  const bool alone = last != task.npos && last > 0 && task.find("-length-") == task.npos;
  return word == "length" && alone ? number_at(last + 1) : kNothing;
}

std::string score_axis_title(const std::string& word) {
  if (word == "length") return "length (tokens)";
  if (word == "depth") return "depth (%)";
  return word == "distance" || word == "position" ? word + " (tokens)" : word;
}

}  // namespace saccade
