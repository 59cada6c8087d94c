#include "analysis/tasks/task_steps.h"

#include "kernels/engine/error.h"
#include "models/config/config.h"

namespace saccade {

int64_t named_step(const std::string& text, int64_t steps, const std::string& origin) {
  const bool is_share = text.ends_with('%');
  const std::string digits = is_share ? text.substr(0, text.size() - 1) : text;
  const bool is_whole = digits.find_first_not_of("0123456789") == digits.npos;
  const bool is_number = digits.find_first_not_of("0123456789.") == digits.npos && digits.find('.') == digits.rfind('.') && digits != ".";
  if (digits.empty() || digits.size() > 9 || !(is_share ? is_number : is_whole))
    throw UsageError(origin + ": \"" + text + "\" is no step and no share such as 90%");
  return is_share ? step_of_share(std::stod(digits) / 100, steps) : std::stoll(digits);
}

}  // namespace saccade
