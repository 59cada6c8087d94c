#include "app/cli/capture_option.h"

#include <algorithm>

#include "kernels/engine/error.h"
#include "models/suggest.h"

namespace saccade::cli {

Capture open_capture(const Run& run, int64_t step, int64_t sample) {
  const std::string directory = run.info().directory.string();
  const std::vector<int64_t> steps = run.capture_steps();
  if (steps.empty())
    throw DataError(directory + " holds no capture yet; they are written at every checkpoint, or as /training/capture_every says");
  if (step < 0) step = steps.back();
  if (std::find(steps.begin(), steps.end(), step) == steps.end()) {
    std::vector<std::string> names;
    for (const int64_t s : steps) names.push_back(std::to_string(s));
    throw UsageError("--step " + std::to_string(step) + ": " + directory + " has captures of step " + alternatives(names));
  }
  std::vector<Capture> captures = run.captures(step);
  if (captures.empty()) throw DataError(directory + ": the capture of step " + std::to_string(step) + " holds no sample");
  if (sample < 0 || sample >= static_cast<int64_t>(captures.size()))
    throw UsageError("--sample is " + std::to_string(sample) + "; expected 0 to " + std::to_string(captures.size() - 1));
  return std::move(captures[static_cast<size_t>(sample)]);
}

}  // namespace saccade::cli
