#pragma once
#include <cstdint>
#include <string>

namespace saccade {

/// The step that a text names of a run of `steps` steps: "500", or "90%" of all, as training.keep_checkpoints finds them. Throws UsageError
/// that begins with `origin` where it is neither.
int64_t named_step(const std::string& text, int64_t steps, const std::string& origin);

}  // namespace saccade
