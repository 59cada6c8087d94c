#include "ui/live/exact_parts.h"

#include <algorithm>

#include "kernels/engine/error.h"

namespace saccade::ui {
namespace {

constexpr double kMostValues = 50'000;

/// Points of `around` left of the exact ones, these, and those right of them.
Line joined(const Line& around, const Line& exact) {
  if (exact.x.empty()) return around;
  std::vector<double> x, y;
  for (size_t i = 0; i < around.x.size() && around.x[i] < exact.x.front(); ++i) x.push_back(around.x[i]), y.push_back(around.y[i]);
  x.insert(x.end(), exact.x.begin(), exact.x.end());
  y.insert(y.end(), exact.y.begin(), exact.y.end());
  for (size_t i = 0; i < around.x.size(); ++i)
    if (around.x[i] > exact.x.back()) x.push_back(around.x[i]), y.push_back(around.y[i]);
  return {std::move(x), std::move(y)};
}

}  // namespace

Line ExactParts::line(const Run& run, const std::string& series, XAxis x, const std::array<double, 2>& part) {
  const Line thinned = line_of(run, series, x);
  const Series* steps = run.find(series);
  if (!steps || !run.find(series + "/mean") || thinned.x.size() < 2) return thinned;
  if (part != part_) lines_.clear();
  part_ = part;
  const std::string key = run.info().directory.string() + "\n" + series + "\n" + std::to_string(static_cast<int>(x));
  if (const auto known = lines_.find(key); known != lines_.end()) return known->second;
  const auto step_at = [&](double at, bool behind) {  // of the next point on that side
    const auto place = std::lower_bound(thinned.x.begin(), thinned.x.end(), at) - thinned.x.begin();
    const auto i = std::clamp<std::ptrdiff_t>(behind ? place : place - 1, 0, static_cast<std::ptrdiff_t>(thinned.x.size()) - 1);
    return steps->step[static_cast<size_t>(i)];
  };
  const double low = step_at(part[0], false), high = step_at(part[1], true);
  if (high - low > kMostValues) return thinned;
  try {
    const Series values = run.exact(series, low, high);
    const Column& places = x == XAxis::step     ? values.step
                           : x == XAxis::tokens ? values.tokens
                           : x == XAxis::flops  ? values.flops
                                                : values.seconds;
    return lines_[key] = joined(thinned, {places, values.value});
  } catch (const Error&) {  // moved away meanwhile: the list will say so
    return thinned;
  }
}

}  // namespace saccade::ui
